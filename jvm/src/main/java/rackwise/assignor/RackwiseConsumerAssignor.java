package rackwise.assignor;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;

/**
 * Assigns the partitions of a classic group so that as few as possible are read across racks; for
 * {@code partition.assignment.strategy} of a consumer.
 *
 * <p>Priorities are those of {@link GroupSolver}'s optimum: balance, then racks, then stickiness. The protocol name is
 * that of the assignors for Python consumers, and so are the bytes of the user data; members of both languages share
 * groups, and either may lead. The consumer's rack is its {@code client.rack}.
 *
 * <p>Bytes of other members never stop it: user data that cannot be read is no history. {@link #assign} throws nothing;
 * where it has no optimum, partitions stay and the others are dealt to the members with the fewest, and the cause is
 * in the consumer's log and in the JMX bean {@code rackwise:type=RackwiseConsumerAssignor}.
 */
public final class RackwiseConsumerAssignor implements ConsumerPartitionAssignor, Configurable {

    /** The protocol name. */
    public static final String NAME = "optimal";

    private static final String TYPE = "RackwiseConsumerAssignor";
    /** One for all consumers of a JVM: an assignor does not learn that its consumer has been closed. */
    private static final AssignorStatus SHARED = new AssignorStatus(System::currentTimeMillis, TYPE,
        "The assignor " + NAME + " leaves partitions at their members and deals the others");

    private final AssignorStatus status;
    private String rack;
    private String instanceId;
    private RebalanceProtocol protocol = RebalanceProtocol.EAGER;
    private List<TopicPartition> given = List.of();
    private int generation = MemberNote.NO_GENERATION;

    /** The constructor that the consumer calls. */
    public RackwiseConsumerAssignor() {
        this(SHARED);
    }

    RackwiseConsumerAssignor(AssignorStatus status) {
        this.status = status;
    }

    /** Reads the consumer's rack, instance id and other assignors, and registers the JMX bean. */
    @Override
    public void configure(Map<String, ?> consumerConfig) {
        rack = text(consumerConfig, "client.rack");
        instanceId = text(consumerConfig, "group.instance.id");
        protocol = RebalanceChoice.of(consumerConfig.get("partition.assignment.strategy"));
        status.register();
    }

    private static String text(Map<String, ?> config, String name) {
        Object value = config.get(name);
        return value == null || value.toString().isEmpty() ? null : value.toString();
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return List.of(protocol);
    }

    @Override
    public ByteBuffer subscriptionUserData(Set<String> topics) {
        List<TopicPartition> owned = given.stream().filter(each -> topics.contains(each.topic())).toList();
        boolean held = protocol == RebalanceProtocol.COOPERATIVE;
        return new MemberNote(rack, instanceId, owned, generation, held).write();
    }

    @Override
    public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
        given = List.copyOf(assignment.partitions());
        generation = metadata.generationId();
    }

    @Override
    public GroupAssignment assign(Cluster metadata, GroupSubscription group) {
        try {
            JoinedGroup joined = new JoinedGroup(metadata, group.groupSubscription());
            Map<String, Assignment> answer = joined.released(JoinedGroupSolver.solve(joined));
            status.answered();
            return new GroupAssignment(answer);
        } catch (Throwable thrown) {
            status.fellBack(thrown);
            return new GroupAssignment(withoutOptimum(metadata, group.groupSubscription()));
        }
    }

    private Map<String, Assignment> withoutOptimum(Cluster metadata, Map<String, Subscription> members) {
        try {
            JoinedGroup joined = new JoinedGroup(metadata, members);
            return joined.released(KeepingDealer.deal(joined));
        } catch (Throwable thrown) {
            status.report(thrown);
            return asItIs(members);
        }
    }

    private static Map<String, Assignment> asItIs(Map<String, Subscription> members) {
        Map<String, Assignment> answer = new HashMap<>();
        Set<TopicPartition> seen = new HashSet<>();
        members.forEach((member, subscription) -> {
            List<TopicPartition> kept = new ArrayList<>(subscription.ownedPartitions());
            kept.removeIf(each -> !subscription.topics().contains(each.topic()) || !seen.add(each));
            answer.put(member, new Assignment(kept));
        });
        return answer;
    }
}
