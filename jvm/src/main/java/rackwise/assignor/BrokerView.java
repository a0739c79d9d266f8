package rackwise.assignor;

import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;

/**
 * A group as the coordinator describes it to an assignor (KIP-848).
 *
 * @param group the members
 * @param describer the topics
 */
record BrokerView(GroupSpec group, SubscribedTopicDescriber describer) implements GroupView {

    @Override
    public Collection<String> members() {
        return group.memberIds();
    }

    @Override
    public boolean subscribeAlike() {
        return group.subscriptionType() == SubscriptionType.HOMOGENEOUS;
    }

    @Override
    public Optional<String> rack(String member) {
        return group.memberSubscription(member).rackId();
    }

    @Override
    public Set<Uuid> topics(String member) {
        return group.memberSubscription(member).subscribedTopicIds();
    }

    @Override
    public Map<Uuid, Set<Integer>> owned(String member) {
        return group.memberAssignment(member).partitions();
    }

    @Override
    public int partitions(Uuid topic) {
        return describer.numPartitions(topic);
    }

    @Override
    public Set<String> racks(Uuid topic, int partition) {
        return describer.racksForPartition(topic, partition);
    }
}
