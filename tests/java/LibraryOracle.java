import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.UUID;

/**
 * Java's library as the oracle: each line on stdin is a command of words, each line on stdout its answer.
 *
 *   set|map|set-copy|map-copy HASH/RANK …   numbers of the keys in the order of that collection
 *   sized CAPACITY HASH/RANK …              the same of new HashSet(capacity)
 *   random SEED BOUND …                     results of nextInt(bound), one after the other
 *   shuffle SEED COUNT                      0, 1, … after Collections.shuffle
 *   heap N|push:KEY|pop|drop:N …            the array of a PriorityQueue of (key, number) that compares by key only
 *   heapify KEY …                           the same, built from a collection
 *   strings HEX …                           hash of each text (UTF-16), then the texts' places in sorted order
 *   uuids TEXT …                            the same of UUIDs
 */
public class LibraryOracle {

    private record Key(int number, int hash, int rank) implements Comparable<Key> {
        @Override
        public int hashCode() {
            return hash;
        }

        @Override
        public int compareTo(Key other) {
            return Integer.compare(rank, other.rank);
        }
    }

    private record Entry(int key, int number) { }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.trim().split(" +");
            System.out.println(answer(words[0], Arrays.asList(words).subList(1, words.length)));
        }
    }

    private static String answer(String question, List<String> words) {
        return switch (question) {
            case "set" -> numbers(added(new HashSet<>(), keys(words)));
            case "set-copy" -> numbers(new HashSet<>(keys(words)));
            case "sized" -> numbers(added(new HashSet<>(number(words.get(0))), keys(words.subList(1, words.size()))));
            case "map" -> numbers(mapped(keys(words)).keySet());
            case "map-copy" -> numbers(new HashMap<>(listed(keys(words))).keySet());
            case "random" -> drawn(words);
            case "shuffle" -> shuffled(words);
            case "heap" -> heap(words);
            case "heapify" -> heapify(words);
            case "strings" -> hashed(words.stream().map(LibraryOracle::text).toList());
            case "uuids" -> hashed(words.stream().map(UUID::fromString).toList());
            default -> throw new IllegalStateException("no such question: " + question);
        };
    }

    private static List<Key> keys(List<String> words) {
        List<Key> keys = new ArrayList<>();
        for (String word : words) {
            String[] parts = word.split("/");
            keys.add(new Key(keys.size(), number(parts[0]), number(parts[1])));
        }
        return keys;
    }

    private static Collection<Key> added(HashSet<Key> set, List<Key> keys) {
        keys.forEach(set::add);
        return set;
    }

    private static Map<Key, Integer> mapped(List<Key> keys) {
        Map<Key, Integer> map = new HashMap<>();
        keys.forEach(key -> map.put(key, 0));
        return map;
    }

    /** A map that iterates in the order of the keys, as the source of a copy. */
    private static Map<Key, Integer> listed(List<Key> keys) {
        Map<Key, Integer> map = new java.util.LinkedHashMap<>();
        keys.forEach(key -> map.put(key, 0));
        return map;
    }

    private static String numbers(Collection<Key> keys) {
        StringBuilder out = new StringBuilder();
        keys.forEach(key -> out.append(key.number()).append(' '));
        return out.toString();
    }

    private static String drawn(List<String> words) {
        Random random = new Random(Long.parseLong(words.get(0)));
        StringBuilder out = new StringBuilder();
        words.subList(1, words.size()).forEach(bound -> out.append(random.nextInt(number(bound))).append(' '));
        return out.toString();
    }

    private static String shuffled(List<String> words) {
        List<Integer> items = new ArrayList<>();
        for (int i = 0; i < number(words.get(1)); i++) {
            items.add(i);
        }
        Collections.shuffle(items, new Random(Long.parseLong(words.get(0))));
        StringBuilder out = new StringBuilder();
        items.forEach(item -> out.append(item).append(' '));
        return out.toString();
    }

    private static String heap(List<String> words) {
        PriorityQueue<Entry> queue = new PriorityQueue<>(Comparator.comparingInt(Entry::key));
        List<Entry> pushed = new ArrayList<>();
        for (String word : words) {
            String[] parts = word.split(":");
            switch (parts[0]) {
                case "push" -> {
                    pushed.add(new Entry(number(parts[1]), pushed.size()));
                    queue.add(pushed.get(pushed.size() - 1));
                }
                case "pop" -> queue.poll();
                default -> queue.remove(pushed.get(number(parts[1])));
            }
        }
        return entries(queue);
    }

    private static String heapify(List<String> words) {
        List<Integer> keys = words.stream().map(LibraryOracle::number).toList();
        StringBuilder out = new StringBuilder();
        new PriorityQueue<>(keys).forEach(key -> out.append(key).append(' '));
        return out.toString();
    }

    private static String entries(Collection<Entry> entries) {
        StringBuilder out = new StringBuilder();
        entries.forEach(entry -> out.append(entry.number()).append(' '));
        return out.toString();
    }

    private static <T extends Comparable<T>> String hashed(List<T> values) {
        StringBuilder out = new StringBuilder();
        values.forEach(value -> out.append(value.hashCode()).append(' '));
        values.stream().sorted().forEach(value -> out.append(values.indexOf(value)).append(' '));
        return out.toString();
    }

    private static String text(String hex) {
        StringBuilder out = new StringBuilder();
        for (int at = 0; at < hex.length() - 1; at += 4) {
            out.append((char) Integer.parseInt(hex.substring(at, at + 4), 16));
        }
        return out.toString();
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }
}
