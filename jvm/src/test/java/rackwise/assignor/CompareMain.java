package rackwise.assignor;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import rackwise.JsonLines;

import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Answers groups: a line of JSON in, a line of JSON out, with the assignment by names and the cause when the answer is
 * not the assignor's own. A group may have {@code max_moves}.
 */
public final class CompareMain {

    private CompareMain() {
    }

    /** Reads groups until the end of the input. */
    public static void main(String[] arguments) throws IOException {
        JsonLines.answer(CompareMain::answer);
    }

    private static Map<String, Object> answer(JsonNode question) {
        GroupCase group = GroupCase.of(question);
        AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
        RackwiseAssignor assignor = new RackwiseAssignor(status);
        if (question.has("max_moves")) {
            assignor.configure(Map.of("node.id", 1, AssignorSettings.MAX_MOVES, question.get("max_moves").asText()));
        }
        ConsumerGroupPartitionAssignor asked = question.path("uniform").asBoolean() ? new UniformAssignor() : assignor;
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("assignment", group.named(asked.assign(group.spec(), group.describer())));
        answer.put("fallback", status.getLastFallbackCause());
        return answer;
    }
}
