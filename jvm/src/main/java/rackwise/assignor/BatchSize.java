package rackwise.assignor;

import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/**
 * The size of the batch in which the coordinator writes an answer.
 *
 * <p>The coordinator writes one record ({@code ConsumerGroupTargetAssignmentMemberValue}) for each member whose
 * assignment changes, all of them in one batch of {@code __consumer_offsets}. A batch above {@code max.message.bytes}
 * of that topic is refused, which is fatal to members. Sizes are exact but for two facts that the coordinator does not
 * tell: the group id, for which {@link #GROUP_ID_BYTES} are counted, and what the heartbeat of the member writes beside
 * the answer, for which {@link #BESIDE_BYTES} and two more of the largest record are counted.
 */
final class BatchSize {

    /** What is counted as the length of the group id. */
    static final int GROUP_ID_BYTES = 128;
    /** The header of a batch, the member's own metadata and the epochs of the group. */
    static final int BESIDE_BYTES = 8 * 1024;

    private static final int UUID_BYTES = 16;
    private static final int VERSION_BYTES = 2;
    private static final int STRING_LENGTH_BYTES = 2;
    private static final int PARTITION_BYTES = 4;
    private static final int NO_TAGS_BYTES = 1;

    private BatchSize() {
    }

    /** Returns the size in bytes that the records of an answer need. */
    static long of(GroupSpec group, GroupAssignment answer) {
        long size = BESIDE_BYTES;
        long largest = 0;
        int offset = 0;
        for (Map.Entry<String, MemberAssignment> entry : answer.members().entrySet()) {
            MemberAssignment before = group.memberAssignment(entry.getKey());
            Map<Uuid, Set<Integer>> now = entry.getValue().partitions();
            // A member without partitions may be new, and a new one gets a record in any case.
            if (entry.getValue() != before && (now.isEmpty() || !now.equals(before.partitions()))) {
                long record = recordBytes(offset++, GROUP_ID_BYTES, entry.getKey(), now.values());
                largest = Math.max(largest, record);
                size += record;
            }
        }
        return size + 2 * largest;
    }

    /**
     * Returns the size in bytes of the record of one member.
     *
     * @param offset the record's place in its batch
     * @param groupIdBytes the length of the group id
     * @param memberId the member
     * @param topics for each topic the partition numbers
     */
    static int recordBytes(int offset, int groupIdBytes, String memberId, Collection<Set<Integer>> topics) {
        int memberIdBytes = memberId.getBytes(StandardCharsets.UTF_8).length;
        int key = VERSION_BYTES + STRING_LENGTH_BYTES + groupIdBytes + STRING_LENGTH_BYTES + memberIdBytes;
        int value = VERSION_BYTES + arrayLength(topics.size()) + NO_TAGS_BYTES;
        for (Set<Integer> numbers : topics) {
            value += UUID_BYTES + arrayLength(numbers.size()) + PARTITION_BYTES * numbers.size() + NO_TAGS_BYTES;
        }
        // attributes, difference of time, place, key, value, number of headers
        int body = 1 + varint(0) + varint(offset) + varint(key) + key + varint(value) + value + varint(0);
        return varint(body) + body;
    }

    private static int arrayLength(int elements) {
        return unsignedVarint(elements + 1);
    }

    /** Returns the size of a number from 0 up in the zigzag form of records. */
    private static int varint(int number) {
        return unsignedVarint(2L * number);
    }

    /** Returns the size of a number in groups of seven bits. */
    private static int unsignedVarint(long number) {
        return Math.max(1, (Long.SIZE - Long.numberOfLeadingZeros(number) + 6) / 7);
    }
}
