package rackwise.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Answers when the optimum cannot be had: as the broker's {@code uniform} does, and where that is missing or fails too,
 * with each partition at its present member and the others dealt to the members with the fewest.
 */
final class FallbackAssignor {

    /** Internal to the broker, so a broker may come that does not have it. */
    private static final String UNIFORM = "org.apache.kafka.coordinator.group.assignor.UniformAssignor";

    private final ConsumerGroupPartitionAssignor uniform;

    FallbackAssignor() {
        this(UNIFORM);
    }

    FallbackAssignor(String className) {
        ConsumerGroupPartitionAssignor found = null;
        try {
            found = (ConsumerGroupPartitionAssignor) Class.forName(className).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException | LinkageError | ClassCastException missing) {
            // assign answers without it
        }
        uniform = found;
    }

    /** Returns an answer in any case; reports to the status when {@code uniform} cannot give it. */
    GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics, AssignorStatus status) {
        if (uniform != null) {
            try {
                return uniform.assign(group, topics);
            } catch (Throwable thrown) {
                status.report(thrown);
            }
        }
        try {
            return keepAndDeal(group, topics);
        } catch (Throwable thrown) {
            status.report(thrown);
            return asItIs(group);
        }
    }

    private static GroupAssignment asItIs(GroupSpec group) {
        Map<String, MemberAssignment> answer = new HashMap<>();
        group.memberIds().forEach(member -> answer.put(member, group.memberAssignment(member)));
        return new GroupAssignment(answer);
    }

    private static GroupAssignment keepAndDeal(GroupSpec group, SubscribedTopicDescriber topics) {
        String[] members = group.memberIds().toArray(String[]::new);
        Arrays.sort(members);
        Map<String, Map<Uuid, Set<Integer>>> given = new HashMap<>();
        Map<String, Integer> loads = new HashMap<>();
        Map<Uuid, List<String>> readers = new HashMap<>();
        for (String member : members) {
            given.put(member, new HashMap<>());
            loads.put(member, 0);
            for (Uuid topic : group.memberSubscription(member).subscribedTopicIds()) {
                readers.computeIfAbsent(topic, each -> new ArrayList<>()).add(member);
            }
        }
        Uuid[] ids = readers.keySet().toArray(Uuid[]::new);
        Arrays.sort(ids);
        for (Uuid topic : ids) {
            for (int number = 0; number < topics.numPartitions(topic); number++) {
                String member = reader(group, topic, number, readers.get(topic), loads);
                given.get(member).computeIfAbsent(topic, each -> new HashSet<>()).add(number);
                loads.merge(member, 1, Integer::sum);
            }
        }
        Map<String, MemberAssignment> answer = new HashMap<>();
        given.forEach((member, partitions) -> answer.put(member, new MemberPartitions(partitions)));
        return new GroupAssignment(answer);
    }

    private static String reader(
            GroupSpec group, Uuid topic, int number, List<String> readers, Map<String, Integer> loads) {
        String fewest = readers.get(0);
        for (String member : readers) {
            if (group.memberAssignment(member).partitions().getOrDefault(topic, Set.of()).contains(number)) {
                return member;
            }
            if (loads.get(member) < loads.get(fewest)) {
                fewest = member;
            }
        }
        return fewest;
    }
}
