package rackwise.assignor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/** Makes the answer to the coordinator; a member that keeps exactly what it has gets its present assignment back. */
final class AnswerBuilder {

    private final GroupSpec group;
    private final GroupModel model;
    private final int[] client;
    private final int[] topicOf;

    private AnswerBuilder(GroupSpec group, GroupModel model, int[] client) {
        this.group = group;
        this.model = model;
        this.client = client;
        topicOf = model.topicOfPartition();
    }

    /** Returns the answer in which partition p belongs to member {@code client[p]}. */
    static GroupAssignment build(GroupSpec group, GroupModel model, int[] client) {
        return new AnswerBuilder(group, model, client).build();
    }

    private GroupAssignment build() {
        int members = model.members().count();
        int[] first = new int[members + 1];
        int[] kept = new int[members];
        for (int each = 0; each < client.length; each++) {
            first[client[each] + 1]++;
            kept[client[each]] += client[each] == model.owner()[each] ? 1 : 0;
        }
        for (int member = 1; member <= members; member++) {
            first[member] += first[member - 1];
        }
        int[] next = Arrays.copyOf(first, members);
        int[] sorted = new int[client.length];
        for (int each = 0; each < client.length; each++) {
            sorted[next[client[each]]++] = each;
        }
        Map<String, MemberAssignment> answer = new HashMap<>(2 * members);
        for (int member = 0; member < members; member++) {
            int size = first[member + 1] - first[member];
            boolean same = size == model.members().held()[member] && kept[member] == size;
            String id = model.members().ids()[member];
            answer.put(id, same ? group.memberAssignment(id) : assignment(sorted, first[member], first[member + 1]));
        }
        return new GroupAssignment(answer);
    }

    private MemberAssignment assignment(int[] partitions, int from, int end) {
        if (from == end) {
            return MemberPartitions.NONE;
        }
        Map<Uuid, Set<Integer>> topics = new HashMap<>();
        for (int start = from; start < end;) {
            int topic = topicOf[partitions[start]];
            int base = model.topics().first()[topic];
            int after = start;
            while (after < end && topicOf[partitions[after]] == topic) {
                after++;
            }
            int[] numbers = new int[after - start];
            for (int at = start; at < after; at++) {
                numbers[at - start] = partitions[at] - base;
            }
            topics.put(model.topics().ids()[topic], new PartitionSet(numbers));
            start = after;
        }
        return new MemberPartitions(topics);
    }
}
