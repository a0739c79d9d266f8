package rackwise.assignor;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;

/**
 * Which member had a partition, and which one still holds it, as the subscriptions of a group say.
 *
 * <p>Claims of the highest generation count; older ones are of members that missed a rebalance. What a member holds are
 * the owned partitions of its subscription: the consumer itself writes them, and drops what was lost with its
 * membership, which a note may still name.
 */
final class MemberClaims {

    private record Claim(String member, int generation, Set<TopicPartition> held) {
    }

    private final Map<TopicPartition, List<Claim>> newest = new HashMap<>();
    private final Map<TopicPartition, List<Claim>> holders = new HashMap<>();

    /** Adds what a member claims; partitions that do not exist are dropped. */
    void add(String member, Subscription subscription, MemberNote note, Predicate<TopicPartition> exists) {
        int generation = note.generation() != MemberNote.NO_GENERATION
            ? note.generation() : Math.max(MemberNote.NO_GENERATION, subscription.generationId().orElse(-1));
        Claim claim = new Claim(member, generation, Set.copyOf(subscription.ownedPartitions()));
        claim.held.forEach(each -> holders.computeIfAbsent(each, none -> new ArrayList<>()).add(claim));
        Set<TopicPartition> owned = new LinkedHashSet<>(subscription.ownedPartitions());
        owned.addAll(note.owned());
        owned.removeIf(exists.negate());
        for (TopicPartition each : owned) {
            List<Claim> others = newest.computeIfAbsent(each, none -> new ArrayList<>());
            if (!others.isEmpty() && others.get(0).generation < generation) {
                others.clear();
            }
            if (others.isEmpty() || others.get(0).generation == generation) {
                others.add(claim);
            }
        }
    }

    /** Returns member to the partitions that it alone claims in the highest generation. */
    Map<String, List<TopicPartition>> owned() {
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        newest.forEach((partition, claims) -> {
            if (claims.size() == 1) {
                owned.computeIfAbsent(claims.get(0).member, none -> new ArrayList<>()).add(partition);
            }
        });
        return owned;
    }

    /**
     * Returns the member that may read a partition at once, or null when it has to be revoked first.
     *
     * <p>A consumer that leads a cooperative group throws when a partition goes from a member that holds it to one that
     * does not, also where the former missed a rebalance. Such a partition stays with it until the next one.
     *
     * @param partition the partition
     * @param wanted the member that is to read it
     * @param subscribes whether a member reads this topic
     */
    String reader(TopicPartition partition, String wanted, Predicate<String> subscribes) {
        List<Claim> now = newest.getOrDefault(partition, List.of());
        List<Claim> holding = holders.getOrDefault(partition, List.of());
        boolean isHeld = now.stream().anyMatch(claim -> claim.held.contains(partition));
        if (holding.isEmpty() || holding.stream().anyMatch(claim -> claim.member.equals(wanted))) {
            boolean alone = now.size() == 1 && now.get(0).member.equals(wanted);
            return alone || !isHeld ? wanted : null;
        }
        if (isHeld) {
            return null;
        }
        return holding.stream()
            .filter(claim -> subscribes.test(claim.member))
            .max(Comparator.comparingInt(Claim::generation).thenComparing(Claim::member))
            .map(Claim::member).orElse(null);
    }
}
