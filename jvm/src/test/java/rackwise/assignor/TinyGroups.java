package rackwise.assignor;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/** Groups small enough to try every assignment, and groups of equal topics. */
final class TinyGroups {

    private TinyGroups() {
    }

    /** Makes a group of at most three members and six partitions; equal seeds give equal groups. */
    static GroupCase random(long seed) {
        Random random = new Random(seed);
        List<String> racks = List.of("a", "b", "c").subList(0, 1 + random.nextInt(3));
        Map<String, List<List<String>>> topics = new LinkedHashMap<>();
        int left = 1 + random.nextInt(6);
        for (int number = 0; left > 0; number++) {
            int size = 1 + random.nextInt(left);
            List<List<String>> partitions = new ArrayList<>();
            for (int partition = 0; partition < size; partition++) {
                partitions.add(racks.stream().filter(rack -> random.nextInt(3) == 0).toList());
            }
            topics.put("t" + number, partitions);
            left -= size;
        }
        return new GroupCase(topics, members(random, racks, topics));
    }

    private static Map<String, GroupCase.Member> members(
            Random random, List<String> racks, Map<String, List<List<String>>> topics) {
        Map<String, GroupCase.Member> members = new LinkedHashMap<>();
        boolean alike = random.nextBoolean();
        int count = 1 + random.nextInt(3);
        for (int number = 0; number < count; number++) {
            Set<String> subscribed = new LinkedHashSet<>(topics.keySet());
            if (!alike) {
                subscribed.removeIf(topic -> random.nextInt(3) == 0);
            }
            String rack = random.nextInt(6) == 0 ? null : racks.get(random.nextInt(racks.size()));
            members.put("m" + number, new GroupCase.Member(rack, subscribed, new LinkedHashMap<>()));
        }
        topics.forEach((topic, partitions) -> {
            for (int number = 0; number < partitions.size(); number++) {
                int owner = random.nextInt(count + 1);
                if (owner < count) {
                    members.get("m" + owner).owned().computeIfAbsent(topic, each -> new LinkedHashSet<>()).add(number);
                }
            }
        });
        return members;
    }

    /** Makes members two in each rack, all with the same subscription to topics that have the same racks. */
    static GroupCase alike(int topics, int partitions, int members, String racks) {
        Map<String, List<List<String>>> sets = new LinkedHashMap<>();
        for (int topic = 0; topic < topics; topic++) {
            List<List<String>> rows = new ArrayList<>();
            for (int number = 0; number < partitions; number++) {
                rows.add(List.of(rack(racks, number), rack(racks, number + 1)));
            }
            sets.put("t" + topic, rows);
        }
        Map<String, GroupCase.Member> group = new LinkedHashMap<>();
        for (int number = 0; number < members; number++) {
            group.put("m" + number, new GroupCase.Member(rack(racks, number), sets.keySet(), Map.of()));
        }
        return new GroupCase(sets, group);
    }

    /** Returns the group with the replicas of each partition one rack further. */
    static GroupCase rotated(GroupCase group, String racks) {
        Map<String, List<List<String>>> sets = new LinkedHashMap<>();
        group.topics().forEach((topic, rows) -> sets.put(topic, rows.stream()
            .map(row -> row.stream().map(rack -> rack(racks, racks.indexOf(rack) + 1)).toList()).toList()));
        return new GroupCase(sets, group.members());
    }

    private static String rack(String racks, int number) {
        return racks.substring(number % racks.length(), number % racks.length() + 1);
    }
}
