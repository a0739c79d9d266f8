package rackwise.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.Uuid;

/** Leaves each partition at its present member and deals the others to the members with the fewest; knows no racks. */
final class KeepingDealer {

    private final GroupView group;
    private final Map<String, Map<Uuid, Set<Integer>>> given = new HashMap<>();
    private final Map<String, Integer> loads = new HashMap<>();

    private KeepingDealer(GroupView group) {
        this.group = group;
    }

    /** Returns member to topic to partitions, for every member. */
    static Map<String, Map<Uuid, Set<Integer>>> deal(GroupView group) {
        return new KeepingDealer(group).deal();
    }

    private Map<String, Map<Uuid, Set<Integer>>> deal() {
        String[] members = group.members().toArray(String[]::new);
        Arrays.sort(members);
        Map<Uuid, List<String>> readers = new HashMap<>();
        for (String member : members) {
            given.put(member, new HashMap<>());
            loads.put(member, 0);
            for (Uuid topic : group.topics(member)) {
                readers.computeIfAbsent(topic, each -> new ArrayList<>()).add(member);
            }
        }
        Uuid[] topics = readers.keySet().toArray(Uuid[]::new);
        Arrays.sort(topics);
        for (Uuid topic : topics) {
            for (int number = 0; number < group.partitions(topic); number++) {
                String member = reader(topic, number, readers.get(topic));
                given.get(member).computeIfAbsent(topic, each -> new HashSet<>()).add(number);
                loads.merge(member, 1, Integer::sum);
            }
        }
        return given;
    }

    private String reader(Uuid topic, int number, List<String> readers) {
        String fewest = readers.get(0);
        for (String member : readers) {
            if (group.owned(member).getOrDefault(topic, Set.of()).contains(number)) {
                return member;
            }
            if (loads.get(member) < loads.get(fewest)) {
                fewest = member;
            }
        }
        return fewest;
    }
}
