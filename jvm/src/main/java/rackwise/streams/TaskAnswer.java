package rackwise.streams;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.AssignmentError;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;

/** Makes Kafka's answer of a plan, and validates answers. */
final class TaskAnswer {

    private TaskAnswer() {
    }

    /** Returns the answer of a plan; where it is unfinished the first process asks for a rebalance at that time. */
    static TaskAssignment of(ApplicationModel model, WarmupPlan plan, long nowMs) {
        List<Set<AssignedTask>> given = new ArrayList<>();
        for (int process = 0; process < model.processes().count(); process++) {
            given.add(new HashSet<>());
        }
        for (int task = 0; task < plan.role.length; task++) {
            for (int process = 0; process < given.size(); process++) {
                byte role = plan.role[task][process];
                if (role != WarmupPlan.NONE) {
                    AssignedTask.Type type =
                        role == WarmupPlan.ACTIVE ? AssignedTask.Type.ACTIVE : AssignedTask.Type.STANDBY;
                    given.get(process).add(new AssignedTask(model.tasks().ids()[task], type));
                }
            }
        }
        Instant due = Instant.ofEpochMilli(nowMs + model.settings().probingIntervalMs());
        List<KafkaStreamsAssignment> answer = new ArrayList<>();
        for (int process = 0; process < given.size(); process++) {
            KafkaStreamsAssignment mine =
                KafkaStreamsAssignment.of(model.processes().ids()[process], given.get(process));
            answer.add(plan.unfinished() && process == 0 ? mine.withFollowupRebalance(due) : mine);
        }
        return new TaskAssignment(answer);
    }

    /**
     * Checks an answer with Kafka's validation, and for what that accepts silently: an active task that is missing.
     *
     * @throws IllegalStateException when the answer is not valid
     */
    static TaskAssignment valid(ApplicationState application, TaskAssignment answer) {
        AssignmentError error = TaskAssignmentUtils.validateTaskAssignment(application, answer);
        if (error != AssignmentError.NONE) {
            throw new IllegalStateException("Kafka's validation of the answer says " + error);
        }
        Set<TaskId> given = new HashSet<>();
        for (KafkaStreamsAssignment process : answer.assignment()) {
            for (AssignedTask task : process.tasks().values()) {
                if (task.type() == AssignedTask.Type.ACTIVE) {
                    given.add(task.id());
                }
            }
        }
        Map<TaskId, TaskInfo> all = application.allTasks();
        if (!given.equals(all.keySet())) {
            throw new IllegalStateException(given.size() + " of " + all.size() + " tasks have a process");
        }
        return answer;
    }
}
