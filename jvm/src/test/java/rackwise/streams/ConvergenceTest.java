package rackwise.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;

/** An application on its way, rebalance by rebalance: it arrives, by few warm-ups at a time, and then is still. */
class ConvergenceTest {

    private static final String SEED = "441";

    @Property(seed = SEED, tries = 200)
    void everyApplicationArrivesAndStays(@ForAll long seed) {
        ApplicationCase now = TinyApplications.random(new Random(seed), 6, 24);
        ApplicationModel first = now.model();
        long target = TaskFigures.of(first, new TaskNetwork(first, TaskShares.of(first)).place()).crossing();
        int most = 2 * first.tasks().count() * (1 + first.settings().standbys()) + 3;
        TaskAssignment answer = assign(now);
        int rounds = 0;
        for (; follows(answer); rounds++) {
            assertTrue(rounds < most, "still on its way after " + rounds + " rebalances");
            assertTasksRunWhereTheyHaveCaughtUp(now, answer);
            now = after(now, answer);
            answer = assign(now);
        }
        ApplicationCase settled = after(now, answer);
        ApplicationModel model = settled.model();
        int[] runs = model.tasks().owner();
        TaskFigures.assertFair(model, runs);
        if (first.settings().moveCost() == 0 || first.settings().trafficCost() > first.tasks().count()) {
            assertEquals(target, TaskFigures.of(model, runs).crossing());
        }
        assertEquals(named(settled), named(after(settled, assign(settled))), "nothing changes any more");
    }

    private static TaskAssignment assign(ApplicationCase application) {
        FallbackTasks none = new FallbackTasks(asked -> {
            throw new AssertionError("fell back");
        });
        return new RackwiseTaskAssignor(none).assign(application.state());
    }

    private static boolean follows(TaskAssignment answer) {
        return answer.assignment().stream().anyMatch(each -> each.followupRebalanceDeadline().isPresent());
    }

    private static void assertTasksRunWhereTheyHaveCaughtUp(ApplicationCase now, TaskAssignment answer) {
        ApplicationCase.given(answer, AssignedTask.Type.ACTIVE).forEach((id, tasks) -> tasks.forEach(task -> {
            boolean possible = now.processes().values().stream().anyMatch(each -> ready(each, task));
            boolean stateless = !now.tasks().get(task).stateful();
            assertTrue(stateless || !possible || ready(now.processes().get(id), task), task + " on " + id);
        }));
    }

    private static boolean ready(ApplicationCase.Process process, String task) {
        return process.lags().getOrDefault(task, TinyApplications.END) <= 10_000;
    }

    /** Returns the application after a rebalance, when all copies have been restored. */
    private static ApplicationCase after(ApplicationCase before, TaskAssignment answer) {
        Map<String, Set<String>> active = ApplicationCase.given(answer, AssignedTask.Type.ACTIVE);
        Map<String, Set<String>> standby = ApplicationCase.given(answer, AssignedTask.Type.STANDBY);
        Map<String, ApplicationCase.Process> processes = new LinkedHashMap<>();
        before.processes().forEach((id, process) -> {
            Map<String, Long> lags = new HashMap<>();
            standby.get(id).forEach(task -> lags.put(task, 0L));
            active.get(id).forEach(task -> lags.put(task, -2L));
            processes.put(id, new ApplicationCase.Process(process.rack(), process.threads(), process.tags(),
                new TreeSet<>(active.get(id)), new TreeSet<>(standby.get(id)), lags));
        });
        return new ApplicationCase(before.tasks(), processes, before.settings());
    }

    private static Map<String, String> named(ApplicationCase application) {
        Map<String, String> named = new LinkedHashMap<>();
        application.processes().forEach((id, process) -> named.put(id, process.active() + " " + process.standby()));
        return named;
    }
}
