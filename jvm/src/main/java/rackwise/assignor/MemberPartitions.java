package rackwise.assignor;

import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/**
 * The partitions of one member.
 *
 * @param partitions topic id to partition numbers
 */
record MemberPartitions(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment {

    static final MemberPartitions NONE = new MemberPartitions(Map.of());
}
