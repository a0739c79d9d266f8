package rackwise.streams;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;

import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;

/**
 * Answers when the optimum cannot be had: as Kafka's sticky assignor does, and where that fails too, with each task
 * where it runs, or else where there is a copy of it, or else at the process with the fewest tasks per thread.
 */
final class FallbackTasks {

    private final TaskAssignor sticky;

    FallbackTasks() {
        this(new StickyTaskAssignor());
    }

    FallbackTasks(TaskAssignor sticky) {
        this.sticky = sticky;
    }

    /** Returns a valid answer and hands over what kept the sticky assignor from giving it. */
    TaskAssignment assign(ApplicationState application, BiConsumer<String, Throwable> report) {
        try {
            return TaskAnswer.valid(application, sticky.assign(application));
        } catch (Throwable thrown) {
            report.accept("tasks stay where they are", thrown);
            return keep(application);
        }
    }

    private static TaskAssignment keep(ApplicationState application) {
        Map<ProcessId, KafkaStreamsState> states = new TreeMap<>(application.kafkaStreamsStates(false));
        Map<ProcessId, Set<AssignedTask>> given = new TreeMap<>();
        states.keySet().forEach(process -> given.put(process, new HashSet<>()));
        // Without a process there is no place for a task.
        Set<TaskId> tasks = states.isEmpty() ? Set.of() : application.allTasks().keySet();
        for (TaskId task : new TreeSet<>(tasks)) {
            given.get(keeper(task, states, given)).add(new AssignedTask(task, AssignedTask.Type.ACTIVE));
        }
        return new TaskAssignment(given.entrySet().stream()
            .map(process -> KafkaStreamsAssignment.of(process.getKey(), process.getValue())).toList());
    }

    private static ProcessId keeper(
            TaskId task, Map<ProcessId, KafkaStreamsState> states, Map<ProcessId, Set<AssignedTask>> given) {
        ProcessId copy = null;
        ProcessId idlest = null;
        for (Map.Entry<ProcessId, KafkaStreamsState> process : states.entrySet()) {
            if (process.getValue().previousActiveTasks().contains(task)) {
                return process.getKey();
            }
            boolean holds = process.getValue().previousStandbyTasks().contains(task);
            copy = copy == null && holds ? process.getKey() : copy;
            boolean idler = idlest == null || idler(process.getKey(), idlest, states, given);
            idlest = idler ? process.getKey() : idlest;
        }
        return copy == null ? idlest : copy;
    }

    private static boolean idler(ProcessId one, ProcessId other, Map<ProcessId, KafkaStreamsState> states,
                                 Map<ProcessId, Set<AssignedTask>> given) {
        long mine = (long) given.get(one).size() * states.get(other).numProcessingThreads();
        return mine < (long) given.get(other).size() * states.get(one).numProcessingThreads();
    }
}
