package rackwise.streams;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import rackwise.JsonLines;

import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;

/**
 * Answers applications: a line of JSON in, a line of JSON out, with the target that is aimed at (active tasks and
 * standbys by process), the answer of this rebalance, and whether it is a fallback.
 */
public final class CompareTasks {

    private CompareTasks() {
    }

    /** Reads applications until the end of the input. */
    public static void main(String[] arguments) throws IOException {
        JsonLines.answer(CompareTasks::answer);
    }

    private static Map<String, Object> answer(JsonNode question) {
        ApplicationCase application = ApplicationCase.of(question);
        ApplicationModel model = application.model();
        int[] active = new TaskNetwork(model, TaskShares.of(model)).place();
        StandbyCase standbys = new StandbyCase(model, active);
        int[][] placed = StandbyPlacer.place(standbys);
        Map<String, String> process = new LinkedHashMap<>();
        for (int task = 0; task < active.length; task++) {
            process.put(model.tasks().ids()[task].toString(), id(model, active[task]));
        }
        Map<String, String[]> copies = new LinkedHashMap<>();
        for (int number = 0; number < placed.length; number++) {
            String[] ids = Arrays.stream(placed[number]).mapToObj(each -> id(model, each))
                .toArray(String[]::new);
            copies.put(model.tasks().ids()[standbys.tasks[number]].toString(), ids);
        }
        boolean[] fellBack = new boolean[1];
        FallbackTasks fallback = new FallbackTasks(asked -> {
            fellBack[0] = true;
            throw new IllegalStateException("fell back");
        });
        TaskAssignment given = new RackwiseTaskAssignor(fallback).assign(application.state());
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("target", process);
        answer.put("standbys", copies);
        answer.put("active", ApplicationCase.given(given, AssignedTask.Type.ACTIVE));
        answer.put("standby", ApplicationCase.given(given, AssignedTask.Type.STANDBY));
        answer.put("follows", given.assignment().stream().anyMatch(each -> each.followupRebalanceDeadline().isPresent()));
        answer.put("fallback", fellBack[0]);
        return answer;
    }

    private static String id(ApplicationModel model, int process) {
        return model.processes().ids()[process].id().toString();
    }
}
