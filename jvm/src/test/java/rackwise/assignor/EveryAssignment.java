package rackwise.assignor;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;

/** The best of all assignments of a tiny group, found by trying each of them. */
final class EveryAssignment {

    private static final Comparator<List<Integer>> LEXICOGRAPHIC = (one, other) -> {
        for (int at = 0; at < one.size(); at++) {
            if (!one.get(at).equals(other.get(at))) {
                return Integer.compare(one.get(at), other.get(at));
            }
        }
        return 0;
    };
    /** Balance, then racks, then stickiness. */
    static final Comparator<GroupCase.Figures> RACKS_FIRST = Comparator
        .comparing(GroupCase.Figures::loads, LEXICOGRAPHIC)
        .thenComparing(GroupCase.Figures::crossing).thenComparing(GroupCase.Figures::moved);
    /** Balance, then stickiness, then racks. */
    static final Comparator<GroupCase.Figures> MOVES_FIRST = Comparator
        .comparing(GroupCase.Figures::loads, LEXICOGRAPHIC)
        .thenComparing(GroupCase.Figures::moved).thenComparing(GroupCase.Figures::crossing);

    private final GroupCase group;
    private final BrokerClasses broker;
    private final List<String> topics = new ArrayList<>();
    private final List<Integer> numbers = new ArrayList<>();
    private final List<GroupCase.Figures> all = new ArrayList<>();
    private final List<String> chosen = new ArrayList<>();

    private EveryAssignment(GroupCase group) {
        this.group = group;
        this.broker = group.broker();
        group.topics().forEach((topic, partitions) -> {
            boolean read = group.members().values().stream().anyMatch(member -> member.topics().contains(topic));
            for (int number = 0; read && number < partitions.size(); number++) {
                topics.add(topic);
                numbers.add(number);
            }
        });
    }

    /** Returns the figures of all assignments. */
    static List<GroupCase.Figures> of(GroupCase group) {
        EveryAssignment search = new EveryAssignment(group);
        search.choose();
        return search.all;
    }

    private void choose() {
        int next = chosen.size();
        if (next == topics.size()) {
            all.add(group.figures(answer()));
            return;
        }
        group.members().forEach((id, member) -> {
            if (member.topics().contains(topics.get(next))) {
                chosen.add(id);
                choose();
                chosen.remove(next);
            }
        });
    }

    private GroupAssignment answer() {
        Map<String, Map<Uuid, Set<Integer>>> given = new HashMap<>();
        group.members().keySet().forEach(id -> given.put(id, new HashMap<>()));
        for (int at = 0; at < chosen.size(); at++) {
            Uuid topic = broker.id(topics.get(at));
            given.get(chosen.get(at)).computeIfAbsent(topic, each -> new HashSet<>()).add(numbers.get(at));
        }
        Map<String, MemberAssignment> answer = new HashMap<>();
        given.forEach((id, partitions) -> answer.put(id, new MemberPartitions(partitions)));
        return new GroupAssignment(answer);
    }
}
