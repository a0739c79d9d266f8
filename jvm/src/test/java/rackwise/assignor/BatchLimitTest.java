package rackwise.assignor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordHelpers;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.junit.jupiter.api.Test;

/** The records of an answer fit into one batch, and their size is counted as the broker writes them. */
class BatchLimitTest {

    @Test
    void theSizeOfARecordIsTheSizeThatTheBrokerWrites() throws ReflectiveOperationException {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        for (int topics : new int[] {0, 1, 2, 126, 127, 128, 200}) {
            for (int partitions : new int[] {1, 126, 127, 128, 300}) {
                Set<Integer> numbers = IntStream.range(0, partitions).boxed().collect(Collectors.toSet());
                Map<Uuid, Set<Integer>> given = IntStream.range(0, topics).boxed()
                    .collect(Collectors.toMap(topic -> new Uuid(7, topic), topic -> numbers));
                String group = "a-group-" + "x".repeat(partitions);
                String member = "member-ü-" + "y".repeat(topics);
                CoordinatorRecord record =
                    GroupCoordinatorRecordHelpers.newConsumerGroupTargetAssignmentRecord(group, member, given);
                int written = sizeInBytes(topics, serde.serializeKey(record), serde.serializeValue(record));
                assertEquals(written, BatchSize.recordBytes(topics, group.length(), member, given.values()));
            }
        }
    }

    /** Asks Kafka's {@code DefaultRecord}, whose package is another one in 4.3 than in 4.1. */
    private static int sizeInBytes(int offset, byte[] key, byte[] value) throws ReflectiveOperationException {
        Class<?> type;
        try {
            type = Class.forName("org.apache.kafka.common.record.internal.DefaultRecord");
        } catch (ClassNotFoundException older) {
            type = Class.forName("org.apache.kafka.common.record.DefaultRecord");
        }
        return (int) type.getMethod(
                "sizeInBytes", int.class, long.class, ByteBuffer.class, ByteBuffer.class, Header[].class)
            .invoke(null, offset, 0L, ByteBuffer.wrap(key), ByteBuffer.wrap(value), new Header[0]);
    }

    @Test
    void anAnswerThatIsTooLargeStepsDownToBlocksThenToFewMovesThenToUniform() {
        GroupCase fresh = TinyGroups.alike(40, 12, 60, "abc");
        long spread = size(fresh, Long.MAX_VALUE);
        AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
        GroupAssignment blocks = assign(fresh, spread - 1, status);
        assertEquals(1, status.getSmallerAssignments());
        assertEquals(0, status.getFallbacks());
        assertTrue(BatchSize.of(fresh.spec(), blocks) < spread);
        assertEquals(0, fresh.figures(blocks).crossing());

        GroupCase rotated = TinyGroups.rotated(fresh.after(blocks), "abc");
        AssignorStatus next = new AssignorStatus(System::currentTimeMillis);
        GroupAssignment fewest = assign(rotated, BatchSize.BESIDE_BYTES, next);
        assertEquals(0, rotated.figures(fewest).moved());
        assertEquals(1, next.getLimitedAssignments());
        assertEquals(0, next.getFallbacks());

        AssignorStatus last = new AssignorStatus(System::currentTimeMillis);
        assign(fresh, 100, last);
        assertTrue(last.getLastFallbackCause().contains("bytes; rackwise.assignor.max.batch.bytes or message.max.bytes "
            + "allows 100"), last.getLastFallbackCause());
    }

    @Test
    void topicsSpreadOverMembersWhileTheBatchHasRoom() {
        GroupCase fresh = TinyGroups.alike(4, 12, 6, "abc");
        AssignorStatus status = new AssignorStatus(System::currentTimeMillis);
        Set<Integer> topicsPerMember = new HashSet<>();
        fresh.named(assign(fresh, Long.MAX_VALUE, status)).values().forEach(each -> topicsPerMember.add(each.size()));
        assertEquals(Set.of(4), topicsPerMember);
        assertEquals(0, status.getSmallerAssignments());
    }

    @Test
    void theLimitOfTheBrokerIsTheDefault() {
        assertEquals(1_048_588, AssignorSettings.from(Map.of()).maxBatchBytes());
        assertEquals(5_000, AssignorSettings.from(Map.of("message.max.bytes", 5_000)).maxBatchBytes());
        assertEquals(7, AssignorSettings.from(Map.of(
            "message.max.bytes", 5_000, AssignorSettings.MAX_BATCH_BYTES, "7")).maxBatchBytes());
    }

    private static long size(GroupCase group, long limit) {
        return BatchSize.of(group.spec(), assign(group, limit, new AssignorStatus(System::currentTimeMillis)));
    }

    private static GroupAssignment assign(GroupCase group, long limit, AssignorStatus status) {
        RackwiseAssignor assignor = new RackwiseAssignor(status);
        assignor.configure(Map.of(AssignorSettings.MAX_BATCH_BYTES, limit));
        GroupAssignment answer = assignor.assign(group.spec(), group.describer());
        Set<String> members = new TreeSet<>(answer.members().keySet());
        assertEquals(new TreeSet<>(group.members().keySet()), members);
        return answer;
    }
}
