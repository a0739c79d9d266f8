package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.junit.jupiter.api.Test;

/** Every group of the golden file, which {@code assignors.optimal_consumer} has solved, has the same figures here. */
class GoldenGroupsTest {

    private static final Path FILE = Path.of("src", "test", "resources", "groups.jsonl");
    private static final ObjectMapper JSON = new ObjectMapper();

    @Test
    void everyGroupHasTheFiguresOfTheOptimum() throws IOException {
        List<String> lines = Files.readAllLines(FILE);
        assertTrue(lines.size() >= 400, lines.size() + " groups");
        for (int number = 0; number < lines.size(); number++) {
            JsonNode json = JSON.readTree(lines.get(number));
            GroupCase group = GroupCase.of(json);
            AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
            GroupAssignment answer = new RackwiseAssignor(status).assign(group.spec(), group.describer());
            assertEquals("", status.getLastFallbackCause(), "line " + (number + 1));
            assertEquals(expected(json.get("optimum")), group.figures(answer), "line " + (number + 1));
        }
    }

    private static GroupCase.Figures expected(JsonNode json) {
        List<Integer> loads = new ArrayList<>();
        json.get("loads").forEach(load -> loads.add(load.asInt()));
        return new GroupCase.Figures(loads, json.get("crossing").asInt(), json.get("moved").asInt());
    }
}
