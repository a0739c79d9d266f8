package rackwise.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.junit.jupiter.api.Test;

/** What does not throw, and what is answered where the optimum cannot be had. */
class TaskFallbackTest {

    private static final ApplicationCase APPLICATION = TinyApplications.random(new Random(1), 4, 12);

    /** An application whose lags cannot be had, as when Streams was asked without them. */
    private static ApplicationState withoutLags() {
        return withStates(computeTaskLags -> {
            if (computeTaskLags) {
                throw new IllegalStateException("there are no lags");
            }
            return APPLICATION.state().kafkaStreamsStates(false);
        });
    }

    /** The application with other states of its processes. */
    private static ApplicationState withStates(Function<Boolean, Map<ProcessId, KafkaStreamsState>> states) {
        ApplicationState whole = APPLICATION.state();
        return new ApplicationState() {
            @Override
            public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
                return states.apply(computeTaskLags);
            }

            @Override
            public AssignmentConfigs assignmentConfigs() {
                return whole.assignmentConfigs();
            }

            @Override
            public Map<TaskId, TaskInfo> allTasks() {
                return whole.allTasks();
            }
        };
    }

    private static Set<String> active(TaskAssignment answer) {
        List<String> tasks = new ArrayList<>();
        ApplicationCase.given(answer, AssignedTask.Type.ACTIVE).values().forEach(tasks::addAll);
        assertEquals(tasks.size(), Set.copyOf(tasks).size(), "a task is active twice");
        return Set.copyOf(tasks);
    }

    @Test
    void theStickyAssignorOfKafkaAnswersFirst() {
        TaskAssignment answer = new RackwiseTaskAssignor().assign(withoutLags());
        assertEquals(APPLICATION.tasks().keySet(), active(answer));
    }

    @Test
    void tasksStayWhereTheyAreWhenThatFailsToo() {
        List<String> reported = new ArrayList<>();
        FallbackTasks fallback = new FallbackTasks(asked -> {
            throw new StackOverflowError("deep");
        });
        TaskAssignment answer = fallback.assign(withoutLags(), (consequence, cause) -> reported.add(cause.toString()));
        assertEquals(List.of("java.lang.StackOverflowError: deep"), reported);
        assertEquals(APPLICATION.tasks().keySet(), active(answer));
        Map<String, Set<String>> given = ApplicationCase.given(answer, AssignedTask.Type.ACTIVE);
        APPLICATION.processes().forEach((id, process) -> assertTrue(given.get(id).containsAll(process.active()), id));
    }

    @Test
    void withoutAProcessNoTaskHasAPlace() {
        ApplicationState empty = withStates(computeTaskLags -> Map.of());
        assertEquals(0, new RackwiseTaskAssignor().assign(empty).assignment().size());
    }

    @Test
    void anAnswerThatLeavesATaskOutIsNotValidThoughKafkaAcceptsIt() {
        ApplicationState application = APPLICATION.state();
        TaskAssignment whole = new RackwiseTaskAssignor().assign(application);
        List<KafkaStreamsAssignment> cut = new ArrayList<>();
        whole.assignment().forEach(each -> cut.add(KafkaStreamsAssignment.of(each.processId(), Set.of())));
        assertThrows(IllegalStateException.class, () -> TaskAnswer.valid(application, new TaskAssignment(cut)));
    }

    @Test
    void aProcessWithoutAThreadHasNoTaskAndNoneAtAllFallsBack() {
        Map<String, ApplicationCase.Process> processes = new TreeMap<>(APPLICATION.processes());
        processes.replaceAll((id, each) -> new ApplicationCase.Process(
            each.rack(), id.equals(TinyApplications.id(0)) ? 0 : 1, each.tags(), each.active(), each.standby(),
            each.lags()));
        ApplicationModel model = new ApplicationCase(APPLICATION.tasks(), processes, APPLICATION.settings()).model();
        for (int process : new TaskNetwork(model, TaskShares.of(model)).place()) {
            assertTrue(process > 0, "a task without a thread");
        }
        processes.keySet().retainAll(Set.of(TinyApplications.id(0)));
        ApplicationCase none = new ApplicationCase(APPLICATION.tasks(), processes, APPLICATION.settings());
        assertThrows(IllegalArgumentException.class, none::model);
        assertEquals(APPLICATION.tasks().keySet(), active(new RackwiseTaskAssignor().assign(none.state())));
    }

    @Test
    void theHighestCostsAndNoRacksAtAllAreNoFallback() {
        Map<String, ApplicationCase.Task> tasks = new TreeMap<>();
        List<Set<String>> unknown = new ArrayList<>();
        unknown.add(null);
        for (int number = 0; number < 1_000; number++) {
            tasks.put("0_" + number, new ApplicationCase.Task(true, unknown, unknown));
        }
        Map<String, ApplicationCase.Process> processes = new TreeMap<>();
        for (int number = 0; number < 7; number++) {
            processes.put(TinyApplications.id(number),
                new ApplicationCase.Process(null, 1, Map.of(), Set.of(), Set.of(), Map.of()));
        }
        Map<String, JsonNode> settings = new HashMap<>(APPLICATION.settings());
        settings.put("traffic_cost", IntNode.valueOf(Integer.MAX_VALUE));
        settings.put("move_cost", IntNode.valueOf(Integer.MAX_VALUE - 1));
        settings.put("standbys", IntNode.valueOf(2));
        settings.put("tags", JsonNodeFactory.instance.arrayNode());
        FallbackTasks none = new FallbackTasks(asked -> {
            throw new AssertionError("fell back");
        });
        TaskAssignment answer =
            new RackwiseTaskAssignor(none).assign(new ApplicationCase(tasks, processes, settings).state());
        answer.assignment().forEach(each -> assertEquals(3_000.0 / 7, each.tasks().size(), 1));
    }
}
