package rackwise.assignor;

import java.util.HashMap;
import java.util.Map;

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
        Map<String, MemberAssignment> answer = new HashMap<>();
        KeepingDealer.deal(new BrokerView(group, topics))
            .forEach((member, partitions) -> answer.put(member, new MemberPartitions(partitions)));
        return new GroupAssignment(answer);
    }
}
