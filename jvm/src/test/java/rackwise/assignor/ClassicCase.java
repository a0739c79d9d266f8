package rackwise.assignor;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * A classic group in the classes of a consumer that leads it.
 *
 * @param topics topic to partitions to racks with a replica
 * @param members the subscriptions, by member id
 */
record ClassicCase(Map<String, List<List<String>>> topics, Map<String, Subscription> members) {

    static ClassicCase of(JsonNode json) {
        Map<String, List<List<String>>> topics = new LinkedHashMap<>();
        json.get("topics").properties().forEach(topic -> {
            List<List<String>> partitions = new ArrayList<>();
            topic.getValue().forEach(racks -> partitions.add(texts(racks)));
            topics.put(topic.getKey(), partitions);
        });
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (JsonNode member : json.get("members")) {
            byte[] userData = HexFormat.of().parseHex(member.get("user_data").asText());
            members.put(member.get("id").asText(), new Subscription(texts(member.get("topics")),
                ByteBuffer.wrap(userData), partitions(member.get("owned")), member.get("generation").asInt(),
                Optional.ofNullable(member.get("rack").textValue())));
        }
        return new ClassicCase(topics, members);
    }

    private static List<String> texts(JsonNode json) {
        List<String> texts = new ArrayList<>();
        json.forEach(each -> texts.add(each.asText()));
        return texts;
    }

    static List<TopicPartition> partitions(JsonNode byTopic) {
        List<TopicPartition> partitions = new ArrayList<>();
        byTopic.properties().forEach(topic ->
            topic.getValue().forEach(number -> partitions.add(new TopicPartition(topic.getKey(), number.asInt()))));
        return partitions;
    }

    /** Returns metadata with a broker for each rack. */
    Cluster cluster() {
        Map<String, Node> nodes = new TreeMap<>();
        topics.values().forEach(sets -> sets.forEach(racks -> racks.forEach(rack ->
            nodes.computeIfAbsent(rack, name -> new Node(nodes.size(), "127.0.0.1", 9092, name)))));
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach((topic, sets) -> {
            for (int number = 0; number < sets.size(); number++) {
                Node[] replicas = sets.get(number).stream().map(nodes::get).toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic, number, null, replicas, replicas));
            }
        });
        return new Cluster("c", nodes.values(), partitions, Set.of(), Set.of());
    }

    JoinedGroup joined() {
        return new JoinedGroup(cluster(), members);
    }

    /** Returns the leader's answer. */
    Map<String, List<TopicPartition>> assign(AssignorStatus status) {
        Map<String, List<TopicPartition>> answer = new TreeMap<>();
        new RackwiseConsumerAssignor(status).assign(cluster(), new GroupSubscription(members)).groupAssignment()
            .forEach((member, given) -> answer.put(member, given.partitions()));
        return answer;
    }

    /** Returns the optimum, before it is looked which partitions have to be revoked. */
    Map<String, List<TopicPartition>> wanted() {
        TreeSet<String> subscribed = new TreeSet<>();
        members.values().forEach(each -> subscribed.addAll(each.topics()));
        List<String> names = new ArrayList<>(subscribed);
        Map<String, List<TopicPartition>> wanted = new TreeMap<>();
        members.keySet().forEach(member -> wanted.put(member, new ArrayList<>()));
        JoinedGroupSolver.solve(joined()).forEach((member, byTopic) -> byTopic.forEach((topic, numbers) -> {
            String name = names.get((int) topic.getLeastSignificantBits());
            numbers.forEach(number -> wanted.get(member).add(new TopicPartition(name, number)));
        }));
        return wanted;
    }

    /** Returns the group in the next rebalance: each member still holds what it was given. */
    ClassicCase after(Map<String, List<TopicPartition>> given) {
        Map<String, Subscription> next = new LinkedHashMap<>();
        members.forEach((id, member) -> {
            String rack = joined().rack(id).orElse(null);
            ByteBuffer note = new MemberNote(rack, null, given.get(id), 99, true).write();
            next.put(id, new Subscription(member.topics(), note, given.get(id), 99, Optional.ofNullable(rack)));
        });
        return new ClassicCase(topics, next);
    }

    /** Returns what counts, with members that own these partitions before. */
    GroupCase.Figures figures(Map<String, List<TopicPartition>> answer, Map<TopicPartition, String> owners) {
        List<Integer> loads = new ArrayList<>();
        int crossing = 0;
        int moved = 0;
        JoinedGroup joined = joined();
        for (Map.Entry<String, List<TopicPartition>> member : answer.entrySet()) {
            String rack = joined.rack(member.getKey()).orElse("none");
            loads.add(member.getValue().size());
            for (TopicPartition each : member.getValue()) {
                crossing += topics.get(each.topic()).get(each.partition()).contains(rack) ? 0 : 1;
                moved += owners.getOrDefault(each, member.getKey()).equals(member.getKey()) ? 0 : 1;
            }
        }
        loads.sort((one, other) -> Integer.compare(other, one));
        return new GroupCase.Figures(loads, crossing, moved);
    }

    /** Returns the number of partitions that some member subscribes to. */
    int read() {
        Set<String> subscribed = new HashSet<>();
        members.values().forEach(each -> subscribed.addAll(each.topics()));
        return topics.entrySet().stream().filter(each -> subscribed.contains(each.getKey()))
            .mapToInt(each -> each.getValue().size()).sum();
    }

    static Map<TopicPartition, String> owners(Map<String, List<TopicPartition>> owned) {
        Map<TopicPartition, String> owners = new HashMap<>();
        owned.forEach((member, partitions) -> partitions.forEach(each -> owners.put(each, member)));
        return owners;
    }

    /** Returns true when a consumer that leads a cooperative group would throw: a partition that one member gets is
     * one that another member has to revoke. */
    boolean breaksCooperation(Map<String, List<TopicPartition>> answer) {
        Set<TopicPartition> added = new HashSet<>();
        Set<TopicPartition> revoked = new HashSet<>();
        members.forEach((id, member) -> {
            Set<TopicPartition> more = new HashSet<>(answer.get(id));
            member.ownedPartitions().forEach(more::remove);
            added.addAll(more);
            Set<TopicPartition> less = new HashSet<>(member.ownedPartitions());
            answer.get(id).forEach(less::remove);
            revoked.addAll(less);
        });
        added.retainAll(revoked);
        return !added.isEmpty();
    }
}
