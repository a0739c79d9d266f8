package rackwise.assignor;

import java.util.Collection;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;

/**
 * A consumer group and the topics that it reads, as {@link GroupReader} asks for them: from the coordinator's view in a
 * broker, from the subscriptions of a JoinGroup response in a consumer.
 */
interface GroupView {

    /** Returns the ids of the members. */
    Collection<String> members();

    /** Returns true when all members are known to subscribe to the same topics. */
    boolean subscribeAlike();

    /** Returns the rack of a member; an empty name counts as none. */
    Optional<String> rack(String member);

    /** Returns the topics that a member subscribes to. */
    Set<Uuid> topics(String member);

    /** Returns the partitions that a member has now, by topic. */
    Map<Uuid, Set<Integer>> owned(String member);

    /** Returns the number of partitions of a topic; not above 0 for a topic without metadata. */
    int partitions(Uuid topic);

    /** Returns the racks of the replicas of a partition. */
    Set<String> racks(Uuid topic, int partition);
}
