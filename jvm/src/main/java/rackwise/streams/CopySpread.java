package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Profiles of processes, numbered, and what copies of a task share (KIP-708).
 *
 * <p>A profile is the values of the configured tags, or the rack without tags; an unknown value counts as shared. For
 * one tag an unused value is always right; for several tags and several standbys all ways are tried while they are few,
 * then the best next step is taken.
 */
final class CopySpread {

    private static final int MOST_WAYS = 20_000;

    private final List<List<String>> profiles;
    private final int[] profileOf;
    private final int[] size;
    private final int tags;
    /** Tag to its number of different values. */
    private final int[] known;
    private final Map<List<Integer>, Integer> least = new HashMap<>();
    private final Map<List<Integer>, List<Integer>> next = new HashMap<>();

    CopySpread(String[][] values) {
        Map<List<String>, Integer> numbers = new TreeMap<>(CopySpread::compare);
        Arrays.stream(values).forEach(each -> numbers.putIfAbsent(Arrays.asList(each), 0));
        profiles = List.copyOf(numbers.keySet().stream().map(Collections::unmodifiableList).toList());
        for (int number = 0; number < profiles.size(); number++) {
            numbers.put(profiles.get(number), number);
        }
        profileOf = Arrays.stream(values).mapToInt(each -> numbers.get(Arrays.asList(each))).toArray();
        size = new int[profiles.size()];
        Arrays.stream(profileOf).forEach(profile -> size[profile]++);
        tags = profiles.isEmpty() ? 0 : profiles.get(0).size();
        known = new int[tags];
        for (int tag = 0; tag < tags; tag++) {
            known[tag] = values(tag, all());
        }
    }

    private static int compare(List<String> one, List<String> other) {
        Comparator<String> order = Comparator.nullsFirst(Comparator.naturalOrder());
        for (int tag = 0; tag < one.size(); tag++) {
            int sign = order.compare(one.get(tag), other.get(tag));
            if (sign != 0) {
                return sign;
            }
        }
        return 0;
    }

    int profileOf(int process) {
        return profileOf[process];
    }

    int count() {
        return size.length;
    }

    /** Returns whether there is one tag with a value of its own for each of so many copies, wherever the first is. */
    boolean allApart(int copies) {
        return tags == 1 && known[0] >= copies;
    }

    /** Returns how many copies share with another, summed over tags; the first of each value is left out. */
    int shared(List<Integer> copies) {
        int shared = 0;
        for (int tag = 0; tag < tags; tag++) {
            shared += copies.size() - Math.max(1, values(tag, copies));
        }
        return shared;
    }

    /** Returns profiles for the next of several standbys from which the least sharing can still be reached. */
    List<Integer> nextProfiles(List<Integer> copies, int remaining) {
        List<Integer> key = with(copies, remaining);
        List<Integer> found = next.get(key);
        if (found == null) {
            found = findNext(copies, remaining);
            next.put(key, found);
        }
        return found;
    }

    private List<Integer> findNext(List<Integer> copies, int remaining) {
        int look = fewWays(remaining) ? remaining : 1;
        List<Integer> best = new ArrayList<>();
        int fewest = Integer.MAX_VALUE;
        for (int profile : free(copies)) {
            int reached = leastReachable(sorted(copies, profile), look - 1);
            if (reached < fewest) {
                best.clear();
                fewest = reached;
            }
            if (reached == fewest) {
                best.add(profile);
            }
        }
        return best;
    }

    private int leastReachable(List<Integer> copies, int remaining) {
        List<Integer> key = with(copies, remaining);
        Integer found = least.get(key);
        if (found == null) {
            found = findLeast(copies, remaining);
            least.put(key, found);
        }
        return found;
    }

    private int findLeast(List<Integer> copies, int remaining) {
        List<Integer> free = free(copies);
        if (remaining == 0 || free.isEmpty()) {
            return shared(copies);
        }
        if (tags == 1) {
            int used = values(0, copies);
            int fresh = Math.min(remaining, known[0] - used);
            return copies.size() + remaining - Math.max(1, used + fresh);
        }
        return free.stream().mapToInt(profile -> leastReachable(sorted(copies, profile), remaining - 1)).min()
            .getAsInt();
    }

    /** Returns the profiles with a process that holds no copy yet. */
    private List<Integer> free(List<Integer> copies) {
        return all().stream().filter(profile -> Collections.frequency(copies, profile) < size[profile]).toList();
    }

    private boolean fewWays(int standbys) {
        return tags <= 1 || standbys <= 1 || Math.pow(size.length, standbys) <= MOST_WAYS;
    }

    private int values(int tag, List<Integer> copies) {
        Set<String> values = new HashSet<>();
        copies.forEach(copy -> values.add(profiles.get(copy).get(tag)));
        values.remove(null);
        return values.size();
    }

    private List<Integer> all() {
        List<Integer> all = new ArrayList<>();
        for (int profile = 0; profile < profiles.size(); profile++) {
            all.add(profile);
        }
        return all;
    }

    private static List<Integer> with(List<Integer> copies, int last) {
        List<Integer> more = new ArrayList<>(copies);
        more.add(last);
        return more;
    }

    private static List<Integer> sorted(List<Integer> copies, int profile) {
        List<Integer> more = with(copies, profile);
        Collections.sort(more);
        return more;
    }
}
