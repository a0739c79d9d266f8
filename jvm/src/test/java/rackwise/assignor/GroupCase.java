package rackwise.assignor;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;

/**
 * A group by names, and as the broker's own classes.
 *
 * @param topics topic to partitions to racks with a replica
 * @param members the members, by id
 */
record GroupCase(Map<String, List<List<String>>> topics, Map<String, Member> members) {

    /**
     * One member by names.
     *
     * @param rack null for none
     * @param topics its subscription
     * @param owned topic to the partitions that it has
     */
    record Member(String rack, Set<String> topics, Map<String, Set<Integer>> owned) {
    }

    /**
     * What counts about an answer.
     *
     * @param loads partitions per member, descending
     * @param crossing partitions without a replica in the rack of their member
     * @param moved partitions with another member than the only one that had them
     */
    record Figures(List<Integer> loads, int crossing, int moved) {
    }

    static GroupCase of(JsonNode json) {
        Map<String, List<List<String>>> topics = new LinkedHashMap<>();
        json.get("topics").properties().forEach(topic -> {
            List<List<String>> partitions = new ArrayList<>();
            topic.getValue().forEach(racks -> {
                List<String> names = new ArrayList<>();
                racks.forEach(rack -> names.add(rack.asText()));
                partitions.add(names);
            });
            topics.put(topic.getKey(), partitions);
        });
        Map<String, Member> members = new LinkedHashMap<>();
        for (JsonNode member : json.get("members")) {
            Set<String> subscribed = new TreeSet<>();
            member.get("topics").forEach(topic -> subscribed.add(topic.asText()));
            Map<String, Set<Integer>> owned = new TreeMap<>();
            member.get("owned").properties().forEach(topic -> {
                Set<Integer> numbers = owned.computeIfAbsent(topic.getKey(), each -> new HashSet<>());
                topic.getValue().forEach(number -> numbers.add(number.asInt()));
            });
            JsonNode rack = member.get("rack");
            members.put(member.get("id").asText(), new Member(rack.isNull() ? null : rack.asText(), subscribed, owned));
        }
        return new GroupCase(topics, members);
    }

    BrokerClasses broker() {
        return new BrokerClasses(topics);
    }

    SubscribedTopicDescriber describer() {
        return broker().describer();
    }

    GroupSpec spec() {
        BrokerClasses broker = broker();
        TopicIds.TopicResolver resolver = broker.resolver();
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> inverted = new HashMap<>();
        Set<Set<String>> subscriptions = new HashSet<>();
        members.forEach((id, member) -> {
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            member.owned.forEach((topic, numbers) -> {
                owned.put(broker.id(topic), numbers);
                numbers.forEach(number ->
                    inverted.computeIfAbsent(broker.id(topic), each -> new HashMap<>()).put(number, id));
            });
            subscriptions.add(member.topics);
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.ofNullable(member.rack), Optional.empty(),
                broker.subscription(member.topics, resolver), new Assignment(owned)));
        });
        SubscriptionType type =
            subscriptions.size() <= 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return new GroupSpecImpl(specs, type, inverted);
    }

    /** Returns member to topic to partitions, by names. */
    Map<String, Map<String, Set<Integer>>> named(GroupAssignment answer) {
        BrokerClasses broker = broker();
        Map<String, Map<String, Set<Integer>>> named = new TreeMap<>();
        answer.members().forEach((id, given) -> {
            Map<String, Set<Integer>> byTopic = named.computeIfAbsent(id, each -> new TreeMap<>());
            given.partitions().forEach((topic, numbers) -> byTopic.put(broker.name(topic), new TreeSet<>(numbers)));
        });
        return named;
    }

    /** Returns this group after an answer: each member has what it was given. */
    GroupCase after(GroupAssignment answer) {
        Map<String, Map<String, Set<Integer>>> named = named(answer);
        Map<String, Member> next = new LinkedHashMap<>();
        members.forEach((id, member) ->
            next.put(id, new Member(member.rack, member.topics, named.getOrDefault(id, Map.of()))));
        return new GroupCase(topics, next);
    }

    Figures figures(GroupAssignment answer) {
        Map<String, String> owner = owners();
        List<Integer> loads = new ArrayList<>();
        int crossing = 0;
        int moved = 0;
        for (Map.Entry<String, Map<String, Set<Integer>>> member : named(answer).entrySet()) {
            int load = 0;
            for (Map.Entry<String, Set<Integer>> topic : member.getValue().entrySet()) {
                for (int number : topic.getValue()) {
                    load++;
                    List<String> racks = topics.get(topic.getKey()).get(number);
                    crossing += racks.contains(members.get(member.getKey()).rack) ? 0 : 1;
                    String before = owner.getOrDefault(topic.getKey() + "-" + number, member.getKey());
                    moved += before.equals(member.getKey()) ? 0 : 1;
                }
            }
            loads.add(load);
        }
        loads.sort((one, other) -> Integer.compare(other, one));
        return new Figures(loads, crossing, moved);
    }

    /** Returns partition to the only member that has it. */
    private Map<String, String> owners() {
        Map<String, String> owner = new HashMap<>();
        Set<String> contested = new HashSet<>();
        members.forEach((id, member) -> member.owned.forEach((topic, numbers) -> numbers.forEach(number -> {
            if (owner.put(topic + "-" + number, id) != null) {
                contested.add(topic + "-" + number);
            }
        })));
        owner.keySet().removeAll(contested);
        return owner;
    }

}
