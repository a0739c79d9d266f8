package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

/** Every classic group of the golden file, which a Python leader has assigned, is assigned as well here. */
class ClassicGroupsTest {

    private static final Path FILE = Path.of("src", "test", "resources", "classic-groups.jsonl");
    private static final ObjectMapper JSON = new ObjectMapper();

    @Test
    void everyGroupHasTheFiguresOfThePythonLeaderAndTheSameAssignmentWhereNothingHasToMove() throws IOException {
        List<JsonNode> lines = lines();
        int waiting = 0;
        int unique = 0;
        for (int number = 0; number < lines.size(); number++) {
            JsonNode json = lines.get(number);
            String line = "line " + (number + 1);
            ClassicCase group = ClassicCase.of(json);
            AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
            Map<String, List<TopicPartition>> answer = group.assign(status);
            assertEquals("", status.getLastFallbackCause(), line);

            Map<TopicPartition, String> owners = ClassicCase.owners(byMember(json.get("owned")));
            assertEquals(expected(json.get("optimum")), group.figures(group.wanted(), owners), line);
            List<TopicPartition> given = new ArrayList<>();
            answer.values().forEach(given::addAll);
            assertEquals(given.size(), new HashSet<>(given).size(), line);
            if (!json.get("waiting").isNull()) {
                waiting++;
                assertEquals(json.get("waiting").asInt(), group.read() - given.size(), line);
            }
            if (!json.get("assignment").isNull()) {
                unique++;
                assertEquals(byMember(json.get("assignment")), answer, line);
            }
            assertFalse(group.breaksCooperation(answer), line);
        }
        assertTrue(waiting > 100 && unique > 100, waiting + " groups with waiting partitions, " + unique + " unique");
    }

    @Test
    void theRebalanceAfterTheRevocationsReachesTheOptimumAndMovesNothing() throws IOException {
        for (JsonNode json : lines()) {
            ClassicCase group = ClassicCase.of(json);
            AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
            Map<String, List<TopicPartition>> first = group.assign(status);
            ClassicCase next = group.after(first);
            Map<String, List<TopicPartition>> last = next.assign(status);
            if (last.values().stream().mapToInt(List::size).sum() < next.read()) {
                // What an older claim kept from the optimum is revoked now, and comes with one more.
                first = last;
                next = next.after(first);
                last = next.assign(status);
            }
            GroupCase.Figures optimum = expected(json.get("optimum"));
            GroupCase.Figures found = next.figures(last, ClassicCase.owners(first));
            assertEquals(new GroupCase.Figures(optimum.loads(), optimum.crossing(), 0), found, json.toString());
            assertEquals("", status.getLastFallbackCause());
        }
    }

    @Test
    void aNoteIsReadAndWrittenAsPythonReadsAndWritesIt() throws IOException {
        int foreign = 0;
        for (JsonNode json : lines()) {
            for (JsonNode member : json.get("members")) {
                String sent = member.get("user_data").asText();
                foreign += member.get("understood").isNull() ? 0 : 1;
                String understood = member.get("understood").isNull() ? sent : member.get("understood").asText();
                ByteBuffer userData = ByteBuffer.wrap(HexFormat.of().parseHex(sent));
                assertEquals(understood,
                    HexFormat.of().formatHex(MemberNote.read(userData).write().array()));
                assertEquals(0, userData.position());
            }
        }
        assertTrue(foreign > 100, foreign + " members send other bytes");
    }

    private static List<JsonNode> lines() throws IOException {
        List<JsonNode> lines = new ArrayList<>();
        for (String line : Files.readAllLines(FILE)) {
            lines.add(JSON.readTree(line));
        }
        assertTrue(lines.size() >= 400, lines.size() + " groups");
        return lines;
    }

    private static Map<String, List<TopicPartition>> byMember(JsonNode json) {
        Map<String, List<TopicPartition>> byMember = new HashMap<>();
        json.properties().forEach(each -> byMember.put(each.getKey(), ClassicCase.partitions(each.getValue())));
        return byMember;
    }

    private static GroupCase.Figures expected(JsonNode json) {
        List<Integer> loads = new ArrayList<>();
        json.get("loads").forEach(load -> loads.add(load.asInt()));
        return new GroupCase.Figures(loads, json.get("crossing").asInt(), json.get("moved").asInt());
    }
}
