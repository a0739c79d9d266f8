package rackwise.assignor;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.kafka.common.Configurable;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;

/**
 * Assigns the partitions of a consumer group (KIP-848) so that as few as possible are read across racks.
 *
 * <p>Priorities, in this order, each of them exact:
 * <ol>
 *   <li>balance: the numbers of partitions per member, sorted descending, are lexicographically smallest;</li>
 *   <li>racks: the fewest partitions without a replica in the rack of their member;</li>
 *   <li>stickiness: the fewest partitions that change their member.</li>
 * </ol>
 * Among equals, partitions of the same number of topics of the same size and subscribers go to one member.
 *
 * <p>An exception of an assignor is fatal to the member whose heartbeat is being answered. {@link #assign} therefore
 * never throws: it answers as {@code uniform} does and reports the cause in the log of the broker and by JMX. The
 * answer depends on the arguments only. One instance serves all threads of the coordinator.
 */
public final class RackwiseAssignor implements ConsumerGroupPartitionAssignor, Configurable {

    /** What a member names in {@code group.remote.assignor}, and what the group description shows. */
    public static final String NAME = "rackwise";

    /**
     * Node to what all its assignors have in common. A broker makes a new one whenever it reads its settings, at a
     * dynamic change too, and goes on with the first; a node that is a controller as well makes two at its start.
     */
    private static final Map<String, NodeState> NODES = new ConcurrentHashMap<>();

    private final Map<String, NodeState> nodes;
    private final FallbackAssignor fallback = new FallbackAssignor();
    private NodeState node;

    /** The constructor that the broker calls. */
    public RackwiseAssignor() {
        this(new AssignorStatus(System::currentTimeMillis), NODES);
    }

    /** An assignor that has nothing in common with others. */
    RackwiseAssignor(AssignorStatus status) {
        this(status, new ConcurrentHashMap<>());
    }

    private RackwiseAssignor(AssignorStatus status, Map<String, NodeState> nodes) {
        this.nodes = nodes;
        node = new NodeState(status);
    }

    /** What the assignors of a node count in, and the settings that the node has read last. */
    private static final class NodeState {

        private final AssignorStatus status;
        private volatile AssignorSettings settings = AssignorSettings.DEFAULTS;

        private NodeState(AssignorStatus status) {
            this.status = status;
        }
    }

    /**
     * Reads the settings {@code rackwise.assignor.*} and {@code message.max.bytes} out of the broker's and registers the
     * JMX bean.
     *
     * @throws org.apache.kafka.common.config.ConfigException when a value is not a number in range; the broker then
     *     does not start
     */
    @Override
    public void configure(Map<String, ?> brokerConfig) {
        AssignorSettings settings = AssignorSettings.from(brokerConfig);
        node = nodes.computeIfAbsent(String.valueOf(brokerConfig.get("node.id")), id -> {
            node.status.register(id);
            return node;
        });
        node.settings = settings;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public GroupAssignment assign(GroupSpec group, SubscribedTopicDescriber topics) {
        try {
            GroupAssignment answer = new GroupSolver(node.settings, node.status).solve(group, topics);
            node.status.answered();
            return answer;
        } catch (Throwable thrown) {
            node.status.fellBack(thrown);
            return fallback.assign(group, topics, node.status);
        }
    }
}
