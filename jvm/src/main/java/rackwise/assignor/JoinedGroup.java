package rackwise.assignor;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;

/**
 * A group of the classic protocol as its leader sees it, from subscriptions and metadata.
 *
 * <p>Topics have no ids here: a topic's place among all subscribed names stands for one. A topic that the leader's
 * metadata lacks has no partitions; they come with the next rebalance. Kafka numbers partitions without gaps: one that
 * the metadata lacks below another exists, in unknown racks, and gets a reader.
 */
final class JoinedGroup implements GroupView {

    private static final Comparator<TopicPartition> ORDER =
        Comparator.comparing(TopicPartition::topic).thenComparingInt(TopicPartition::partition);

    private final Map<String, Subscription> members;
    private final Map<String, MemberNote> notes = new HashMap<>();
    private final List<String> names;
    private final Map<String, Set<Uuid>> topics = new HashMap<>();
    private final List<List<Set<String>>> racks = new ArrayList<>();
    private final MemberClaims claims = new MemberClaims();
    private final Map<String, Map<Uuid, Set<Integer>>> owned = new HashMap<>();

    JoinedGroup(Cluster metadata, Map<String, Subscription> members) {
        this.members = members;
        TreeSet<String> subscribed = new TreeSet<>();
        members.values().forEach(each -> subscribed.addAll(each.topics()));
        names = new ArrayList<>(subscribed);
        Map<String, Integer> places = new HashMap<>();
        for (String name : names) {
            places.put(name, places.size());
            racks.add(replicaRacks(metadata.partitionsForTopic(name)));
        }
        for (String member : new TreeSet<>(members.keySet())) {
            Subscription subscription = members.get(member);
            MemberNote note = MemberNote.read(subscription.userData());
            notes.put(member, note);
            Set<Uuid> reads = new HashSet<>();
            subscription.topics().forEach(name -> reads.add(id(places.get(name))));
            topics.put(member, reads);
            claims.add(member, subscription, note, each -> places.containsKey(each.topic())
                && each.partition() >= 0 && each.partition() < racks.get(places.get(each.topic())).size());
        }
        claims.owned().forEach((member, partitions) -> {
            Map<Uuid, Set<Integer>> byTopic = owned.computeIfAbsent(member, none -> new HashMap<>());
            partitions.forEach(each -> byTopic
                .computeIfAbsent(id(places.get(each.topic())), none -> new HashSet<>()).add(each.partition()));
        });
    }

    private static List<Set<String>> replicaRacks(List<PartitionInfo> partitions) {
        List<Set<String>> racks = new ArrayList<>();
        for (PartitionInfo partition : partitions) {
            while (racks.size() <= partition.partition()) {
                racks.add(Set.of());
            }
            Set<String> names = new HashSet<>();
            for (Node replica : partition.replicas()) {
                if (replica.rack() != null && !replica.rack().isEmpty()) {
                    names.add(replica.rack());
                }
            }
            racks.set(partition.partition(), names);
        }
        return racks;
    }

    /**
     * Returns the assignment in which members read what is wanted, but for partitions that have to be revoked first.
     *
     * @param wanted member to its partitions, for all members
     */
    Map<String, Assignment> released(Map<String, Map<Uuid, Set<Integer>>> wanted) {
        Map<String, List<TopicPartition>> given = new HashMap<>();
        members.keySet().forEach(member -> given.put(member, new ArrayList<>()));
        wanted.forEach((member, byTopic) -> byTopic.forEach((topic, numbers) -> {
            String name = names.get(place(topic));
            for (int number : numbers) {
                TopicPartition partition = new TopicPartition(name, number);
                String reader = claims.reader(partition, member, each -> topics.get(each).contains(topic));
                if (reader != null) {
                    given.get(reader).add(partition);
                }
            }
        }));
        Map<String, Assignment> answer = new HashMap<>();
        given.forEach((member, partitions) -> {
            partitions.sort(ORDER);
            answer.put(member, new Assignment(partitions));
        });
        return answer;
    }

    @Override
    public Collection<String> members() {
        return members.keySet();
    }

    @Override
    public boolean subscribeAlike() {
        return false;
    }

    @Override
    public Optional<String> rack(String member) {
        return members.get(member).rackId().filter(name -> !name.isEmpty())
            .or(() -> Optional.ofNullable(notes.get(member).rack()));
    }

    @Override
    public Set<Uuid> topics(String member) {
        return topics.get(member);
    }

    @Override
    public Map<Uuid, Set<Integer>> owned(String member) {
        return owned.getOrDefault(member, Map.of());
    }

    @Override
    public int partitions(Uuid topic) {
        return racks.get(place(topic)).size();
    }

    @Override
    public Set<String> racks(Uuid topic, int partition) {
        return racks.get(place(topic)).get(partition);
    }

    private static Uuid id(int place) {
        return new Uuid(0, place);
    }

    private static int place(Uuid topic) {
        return (int) topic.getLeastSignificantBits();
    }
}
