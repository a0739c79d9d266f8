package rackwise.assignor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

import org.apache.kafka.common.Uuid;

/**
 * Reads a group into a {@link GroupModel}.
 *
 * <p>Sets of topic ids are compared by {@code equals} and never hashed: the hash code of the broker's own sets covers
 * the metadata of the whole cluster. A topic without metadata has no partitions.
 */
final class GroupReader {

    /** Racks are bits of a long. */
    private static final int MOST_RACKS = 63;
    private static final int CONTESTED = -2;

    private final GroupView group;
    private final AssignorSettings settings;
    private final String[] ids;

    private GroupReader(GroupView group, AssignorSettings settings) {
        this.group = group;
        this.settings = settings;
        ids = group.members().toArray(String[]::new);
        Arrays.sort(ids);
    }

    /**
     * Reads a group.
     *
     * @throws GroupTooLargeException when the group exceeds {@code rackwise.assignor.max.pairs} or 63 racks
     */
    static GroupModel read(GroupView group, AssignorSettings settings) {
        return new GroupReader(group, settings).read();
    }

    private GroupModel read() {
        List<Set<Uuid>> subscriptions = new ArrayList<>();
        int[] subscription = subscriptions(subscriptions);
        Map<String, Integer> racks = new HashMap<>();
        int[] rack = racks(racks);
        int[] held = new int[ids.length];
        GroupModel.Members members =
            new GroupModel.Members(ids, rack, racks.size(), subscription, subscriptions.size(), held);
        GroupModel.Topics topics = topics(subscriptions);

        int[] kind = new int[topics.first()[topics.count()]];
        long[] racksOfKind = kinds(topics, racks, kind);
        int[] owner = new int[kind.length];
        Arrays.fill(owner, -1);
        GroupModel model = new GroupModel(members, topics, kind, racksOfKind, owner);
        guard("sets of racks", racksOfKind.length, topics.audiences());
        readOwners(model);
        return model;
    }

    /** Numbers the different subscriptions, in the order of members. */
    private int[] subscriptions(List<Set<Uuid>> different) {
        int[] subscription = new int[ids.length];
        boolean equal = group.subscribeAlike();
        for (int member = 0; member < (equal ? Math.min(1, ids.length) : ids.length); member++) {
            Set<Uuid> topics = group.topics(ids[member]);
            int number = different.indexOf(topics);
            if (number < 0) {
                number = different.size();
                different.add(topics);
                // Each further one is compared with all these.
                guard("subscriptions", number, ids.length);
            }
            subscription[member] = number;
        }
        return subscription;
    }

    private int[] racks(Map<String, Integer> numbers) {
        String[] names = new String[ids.length];
        TreeMap<String, Integer> sorted = new TreeMap<>();
        for (int member = 0; member < ids.length; member++) {
            names[member] = group.rack(ids[member]).filter(name -> !name.isEmpty()).orElse(null);
            if (names[member] != null) {
                sorted.put(names[member], 0);
            }
        }
        if (sorted.size() > MOST_RACKS) {
            throw new GroupTooLargeException(
                "members are in " + sorted.size() + " racks; " + MOST_RACKS + " are the limit");
        }
        sorted.keySet().forEach(name -> numbers.put(name, numbers.size()));
        int[] rack = new int[ids.length];
        for (int member = 0; member < ids.length; member++) {
            rack[member] = names[member] == null ? numbers.size() : numbers.get(names[member]);
        }
        return rack;
    }

    private GroupModel.Topics topics(List<Set<Uuid>> subscriptions) {
        TreeMap<Uuid, BitSet> readers = new TreeMap<>();
        for (int number = 0; number < subscriptions.size(); number++) {
            for (Uuid topic : subscriptions.get(number)) {
                readers.computeIfAbsent(topic, each -> new BitSet()).set(number);
            }
        }
        readers.keySet().removeIf(topic -> group.partitions(topic) <= 0);
        Map<BitSet, Integer> audiences = new HashMap<>();
        Uuid[] topicIds = new Uuid[readers.size()];
        int[] first = new int[readers.size() + 1];
        int[] audience = new int[readers.size()];
        int topic = 0;
        for (Map.Entry<Uuid, BitSet> entry : readers.entrySet()) {
            topicIds[topic] = entry.getKey();
            first[topic + 1] = Math.addExact(first[topic], group.partitions(entry.getKey()));
            audience[topic] = audiences.computeIfAbsent(entry.getValue(), each -> audiences.size());
            topic++;
        }
        guard("sets of subscribers", audiences.size(), ids.length);
        boolean[][] reads = new boolean[audiences.size()][subscriptions.size()];
        audiences.forEach((who, number) -> who.stream().forEach(each -> reads[number][each] = true));
        return new GroupModel.Topics(topicIds, first, audience, reads);
    }

    private long[] kinds(GroupModel.Topics topics, Map<String, Integer> racks, int[] kind) {
        Map<Long, Integer> kinds = new HashMap<>();
        long[] racksOfKind = new long[16];
        long before = -1;
        int last = 0;
        for (int topic = 0; topic < topics.count(); topic++) {
            int first = topics.first()[topic];
            for (int number = 0; number < topics.partitions(topic); number++) {
                long bits = bits(group.racks(topics.ids()[topic], number), racks);
                if (bits != before) {
                    last = kinds.computeIfAbsent(bits, each -> kinds.size());
                    before = bits;
                    if (last == racksOfKind.length) {
                        racksOfKind = Arrays.copyOf(racksOfKind, 2 * last);
                    }
                    racksOfKind[last] = bits;
                }
                kind[first + number] = last;
            }
        }
        return Arrays.copyOf(racksOfKind, kinds.size());
    }

    private static long bits(Set<String> replicaRacks, Map<String, Integer> racks) {
        long bits = 0;
        for (String name : replicaRacks) {
            Integer rack = racks.get(name);
            if (rack != null) {
                bits |= 1L << rack;
            }
        }
        return bits;
    }

    private void readOwners(GroupModel model) {
        GroupModel.Topics topics = model.topics();
        int[] owner = model.owner();
        Map<Uuid, Integer> numbers = new HashMap<>();
        for (int topic = 0; topic < topics.count(); topic++) {
            numbers.put(topics.ids()[topic], topic);
        }
        for (int member = 0; member < ids.length; member++) {
            for (Map.Entry<Uuid, Set<Integer>> entry : group.owned(ids[member]).entrySet()) {
                model.members().held()[member] += entry.getValue().size();
                Integer topic = numbers.get(entry.getKey());
                if (topic == null) {
                    continue;
                }
                for (int number : entry.getValue()) {
                    if (number >= 0 && number < topics.partitions(topic)) {
                        int partition = topics.first()[topic] + number;
                        owner[partition] = owner[partition] == -1 ? member : CONTESTED;
                    }
                }
            }
        }
        dropOwners(model);
    }

    /** Drops owners that do not subscribe any more, and partitions that several members have. */
    private static void dropOwners(GroupModel model) {
        for (int topic = 0; topic < model.topics().count(); topic++) {
            int audience = model.topics().audience()[topic];
            for (int each = model.topics().first()[topic]; each < model.topics().first()[topic + 1]; each++) {
                int owner = model.owner()[each];
                if (owner < 0 || !model.reads(owner, audience)) {
                    model.owner()[each] = -1;
                }
            }
        }
    }

    private void guard(String what, long count, long times) {
        if (count * times > settings.maxPairs()) {
            throw new GroupTooLargeException(count + " " + what + " times " + times + " are more than "
                + AssignorSettings.MAX_PAIRS + " = " + settings.maxPairs());
        }
    }
}
