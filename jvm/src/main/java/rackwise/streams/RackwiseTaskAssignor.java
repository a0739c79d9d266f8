package rackwise.streams;

import java.util.Arrays;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Assigns the tasks of a Streams application (KIP-924, {@code task.assignor.class}) so that as little as possible is
 * read across racks.
 *
 * <p>Active tasks are within floor and ceiling of the share of each process by threads, in total and by subtopology; of
 * all such assignments one has the least cost of KIP-925: {@code rack.aware.assignment.traffic_cost} for each source
 * partition without a replica in the rack of its process, and {@code rack.aware.assignment.non_overlap_cost} for each
 * task that moves (10 and 1 unless set). Then come standbys, and the way there is that of KIP-441: a process that has
 * caught up keeps a task until its destination has.
 *
 * <p>An exception of an assignor, or an answer that Kafka finds invalid, ends the threads of the application.
 * {@link #assign} therefore never throws and validates what it answers; it falls back to Kafka's sticky assignor, then to
 * tasks where they are, and logs why. The answer depends on the argument only, but for the time of a later rebalance.
 */
public final class RackwiseTaskAssignor implements TaskAssignor {

    private static final Logger LOG = LoggerFactory.getLogger(RackwiseTaskAssignor.class);

    private final FallbackTasks fallback;

    /** The constructor that Streams calls. */
    public RackwiseTaskAssignor() {
        this(new FallbackTasks());
    }

    RackwiseTaskAssignor(FallbackTasks fallback) {
        this.fallback = fallback;
    }

    @Override
    public TaskAssignment assign(ApplicationState application) {
        try {
            return TaskAnswer.valid(application, optimum(application));
        } catch (Throwable thrown) {
            report("Kafka's sticky assignor assigns", thrown);
            return fallback.assign(application, RackwiseTaskAssignor::report);
        }
    }

    @Override
    public void onAssignmentComputed(
            ConsumerPartitionAssignor.GroupAssignment assignment,
            ConsumerPartitionAssignor.GroupSubscription subscription, AssignmentError error) {
        if (error != AssignmentError.NONE) {
            LOG.error("Streams refuses the assignment: {}", error);
        }
    }

    private static TaskAssignment optimum(ApplicationState application) {
        ApplicationModel model = ApplicationReader.read(application);
        int[] active = new TaskNetwork(model, TaskShares.of(model)).place();
        StandbyCase standbys = new StandbyCase(model, active);
        WarmupPlan plan = WarmupPlan.of(standbys, StandbyPlacer.place(standbys));
        tell(model, active, plan);
        return TaskAnswer.of(model, plan, System.currentTimeMillis());
    }

    private static void tell(ApplicationModel model, int[] active, WarmupPlan plan) {
        ApplicationModel.Processes processes = model.processes();
        long crossing = 0;
        int moved = 0;
        for (int task = 0; task < active.length; task++) {
            crossing += model.tasks().sources().of(task, processes.rack()[active[task]]);
            moved += active[task] == model.tasks().owner()[task] ? 0 : 1;
        }
        LOG.info("{} tasks on {} processes: {} source partitions have no replica in the rack of their process; "
            + "{} tasks move, and {} copies warm up", active.length, processes.count(), crossing, moved, plan.warmups());
        long unknown = Arrays.stream(processes.rack()).filter(rack -> rack == processes.racks()).count();
        if (unknown > 0) {
            LOG.warn("{} of {} processes have no client.rack: all that they read counts as read across racks",
                unknown, processes.count());
        }
    }

    private static void report(String consequence, Throwable cause) {
        LOG.warn("There is no optimal assignment of tasks, so {}", consequence, cause);
    }
}
