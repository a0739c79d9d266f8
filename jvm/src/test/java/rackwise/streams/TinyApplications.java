package rackwise.streams;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;

/** Applications small enough to try every assignment, and larger ones to follow on their way. */
final class TinyApplications {

    static final long END = 50_000;
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;

    private TinyApplications() {
    }

    /** Makes an application of at most three processes and five tasks; equal seeds give equal applications. */
    static ApplicationCase random(long seed) {
        return random(new Random(seed), 3, 5);
    }

    static ApplicationCase random(Random random, int mostProcesses, int mostTasks) {
        List<String> racks = List.of("a", "b", "c").subList(0, 1 + random.nextInt(3));
        Map<String, ApplicationCase.Task> tasks = new LinkedHashMap<>();
        int left = 1 + random.nextInt(mostTasks);
        for (int subtopology = 0; left > 0; subtopology++) {
            int size = 1 + random.nextInt(left);
            boolean stateful = random.nextInt(4) > 0;
            for (int partition = 0; partition < size; partition++) {
                tasks.put(subtopology + "_" + partition, new ApplicationCase.Task(stateful,
                    List.of(some(random, racks)), stateful ? List.of(some(random, racks)) : List.of()));
            }
            left -= size;
        }
        Map<String, ApplicationCase.Process> processes = new LinkedHashMap<>();
        int count = 1 + random.nextInt(mostProcesses);
        for (int number = 0; number < count; number++) {
            String rack = random.nextInt(6) == 0 ? null : racks.get(random.nextInt(racks.size()));
            Map<String, String> tags = random.nextInt(6) == 0 ? Map.of() : Map.of("zone", "z" + random.nextInt(2));
            processes.put(id(number), new ApplicationCase.Process(
                rack, 1 + random.nextInt(2), tags, new TreeSet<>(), new TreeSet<>(), new HashMap<>()));
        }
        run(random, tasks, processes);
        return new ApplicationCase(tasks, processes, settings(random));
    }

    private static Set<String> some(Random random, List<String> racks) {
        return racks.stream().filter(rack -> random.nextInt(3) == 0).collect(Collectors.toSet());
    }

    static String id(int number) {
        return String.format("00000000-0000-0000-0000-%012x", number);
    }

    private static void run(
            Random random, Map<String, ApplicationCase.Task> tasks, Map<String, ApplicationCase.Process> processes) {
        tasks.forEach((name, task) -> {
            int owner = random.nextInt(processes.size() + 1);
            int copy = random.nextInt(processes.size() + 1);
            if (owner < processes.size()) {
                processes.get(id(owner)).active().add(name);
                processes.get(id(owner)).lags().put(name, -2L);
            }
            if (copy < processes.size() && copy != owner && task.stateful()) {
                processes.get(id(copy)).standby().add(name);
                processes.get(id(copy)).lags().put(name, (long) random.nextInt(20_000));
            }
        });
    }

    private static Map<String, JsonNode> settings(Random random) {
        int[][] costs = {{10, 1}, {1, 10}, {3, 2}, {1, 0}, {0, 1}};
        int[] chosen = costs[random.nextInt(costs.length)];
        return new HashMap<>(Map.of(
            "traffic_cost", JSON.numberNode(chosen[0]), "move_cost", JSON.numberNode(chosen[1]),
            "standbys", JSON.numberNode(random.nextInt(3)), "warmups", JSON.numberNode(1 + random.nextInt(2)),
            "acceptable_lag", JSON.numberNode(10_000), "end", JSON.numberNode(END),
            "tags", random.nextBoolean() ? JSON.arrayNode() : JSON.arrayNode().add("zone")));
    }
}
