package rackwise.streams;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;

import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;

/** Reads what Streams knows about an application into an {@link ApplicationModel}. */
final class ApplicationReader {

    /** Pairs of a task and a process; the roles of as many take 10 MB. */
    static final long MOST_PAIRS = 10_000_000;
    private static final int CONTESTED = -2;

    private final TaskSettings settings;
    private final TaskId[] ids;
    private final TaskInfo[] infos;
    private final ProcessId[] processIds;
    private final KafkaStreamsState[] states;
    private final Map<String, Integer> racks = new HashMap<>();

    private ApplicationReader(ApplicationState application) {
        settings = TaskSettings.of(application.assignmentConfigs());
        Map<TaskId, TaskInfo> tasks = new TreeMap<>(application.allTasks());
        ids = tasks.keySet().toArray(TaskId[]::new);
        infos = tasks.values().toArray(TaskInfo[]::new);
        Map<ProcessId, KafkaStreamsState> processes = new TreeMap<>(application.kafkaStreamsStates(true));
        processIds = processes.keySet().toArray(ProcessId[]::new);
        states = processes.values().toArray(KafkaStreamsState[]::new);
    }

    /**
     * Reads an application.
     *
     * @throws IllegalArgumentException when it is too large or has no process with a thread
     */
    static ApplicationModel read(ApplicationState application) {
        return new ApplicationReader(application).read();
    }

    private ApplicationModel read() {
        if ((long) ids.length * states.length > MOST_PAIRS) {
            throw new IllegalArgumentException(
                ids.length + " tasks times " + states.length + " processes are more than " + MOST_PAIRS);
        }
        ApplicationModel.Processes processes = processes();
        boolean[] stateful = new boolean[ids.length];
        for (int task = 0; task < ids.length; task++) {
            stateful[task] = infos[task].isStateful()
                && infos[task].topicPartitions().stream().anyMatch(TaskTopicPartition::isChangelog);
        }
        int[] owner = new int[ids.length];
        int[][] holders = holders(owner);
        int[] subtopology = subtopologies();
        ApplicationModel.Tasks tasks = new ApplicationModel.Tasks(
            ids, subtopology, Arrays.stream(subtopology).max().orElse(-1) + 1, stateful, owner, holders,
            misses(TaskTopicPartition::isSource), misses(TaskTopicPartition::isChangelog));
        return new ApplicationModel(tasks, processes, lags(stateful, holders), settings);
    }

    private ApplicationModel.Processes processes() {
        int[] capacity = new int[states.length];
        String[] names = new String[states.length];
        for (int process = 0; process < states.length; process++) {
            capacity[process] = states[process].numProcessingThreads();
            names[process] = states[process].rackId().filter(name -> !name.isEmpty()).orElse(null);
        }
        if (Arrays.stream(capacity).asLongStream().sum() < 1 || Arrays.stream(capacity).anyMatch(threads -> threads < 0)) {
            throw new IllegalArgumentException(
                "the processes of the application have " + Arrays.toString(capacity) + " threads");
        }
        Arrays.stream(names).filter(Objects::nonNull).sorted().forEach(name -> racks.putIfAbsent(name, racks.size()));
        int[] rack = new int[states.length];
        for (int process = 0; process < states.length; process++) {
            rack[process] = names[process] == null ? racks.size() : racks.get(names[process]);
        }
        return new ApplicationModel.Processes(processIds, rack, racks.size(), capacity, profiles(names));
    }

    /** Returns the values of the configured tags by process, or its rack without tags; a tag of none is left out. */
    private String[][] profiles(String[] names) {
        List<String[]> columns = new ArrayList<>();
        for (String tag : settings.tags()) {
            columns.add(Arrays.stream(states).map(state -> state.clientTags().get(tag)).toArray(String[]::new));
        }
        if (settings.tags().isEmpty()) {
            columns.add(names);
        }
        columns.removeIf(column -> Arrays.stream(column).allMatch(Objects::isNull));
        String[][] profiles = new String[states.length][columns.size()];
        for (int process = 0; process < states.length; process++) {
            for (int tag = 0; tag < columns.size(); tag++) {
                profiles[process][tag] = columns.get(tag)[process];
            }
        }
        return profiles;
    }

    private int[] subtopologies() {
        int[] numbers = new int[ids.length];
        for (int task = 1; task < ids.length; task++) {
            boolean same = ids[task].subtopology() == ids[task - 1].subtopology()
                && Objects.equals(ids[task].topologyName(), ids[task - 1].topologyName());
            numbers[task] = numbers[task - 1] + (same ? 0 : 1);
        }
        return numbers;
    }

    /** Fills the owners and returns the holders; tasks that the application no longer has are left out. */
    private int[][] holders(int[] owner) {
        Arrays.fill(owner, -1);
        Map<TaskId, Integer> numbers = new HashMap<>();
        List<Set<Integer>> holders = new ArrayList<>();
        for (TaskId id : ids) {
            numbers.put(id, numbers.size());
            holders.add(new TreeSet<>());
        }
        for (int process = 0; process < states.length; process++) {
            for (TaskId id : states[process].previousActiveTasks()) {
                int task = numbers.getOrDefault(id, -1);
                if (task >= 0) {
                    owner[task] = owner[task] == -1 ? process : CONTESTED;
                    holders.get(task).add(process);
                }
            }
            for (TaskId id : states[process].previousStandbyTasks()) {
                int task = numbers.getOrDefault(id, -1);
                if (task >= 0) {
                    holders.get(task).add(process);
                }
            }
        }
        for (int task = 0; task < ids.length; task++) {
            owner[task] = Math.max(-1, owner[task]);
        }
        return holders.stream()
            .map(each -> each.stream().mapToInt(Integer::intValue).toArray()).toArray(int[][]::new);
    }

    private ApplicationModel.RackMisses misses(Predicate<TaskTopicPartition> which) {
        Map<List<Integer>, Integer> numbers = new HashMap<>();
        List<int[]> rows = new ArrayList<>();
        int[] kind = new int[ids.length];
        for (int task = 0; task < ids.length; task++) {
            Integer[] row = new Integer[racks.size() + 1];
            Arrays.fill(row, 0);
            infos[task].topicPartitions().stream().filter(which).forEach(partition -> miss(row, partition));
            List<Integer> key = List.of(row);
            Integer number = numbers.putIfAbsent(key, rows.size());
            if (number == null) {
                rows.add(key.stream().mapToInt(Integer::intValue).toArray());
            }
            kind[task] = numbers.get(key);
        }
        return new ApplicationModel.RackMisses(kind, rows.toArray(int[][]::new));
    }

    /** A partition whose replicas have no known rack is missed in every rack. */
    private void miss(Integer[] row, TaskTopicPartition partition) {
        Set<String> names = partition.rackIds().orElse(Set.of());
        racks.forEach((name, rack) -> row[rack] += names.contains(name) ? 0 : 1);
        row[row.length - 1]++;
    }

    /**
     * Reads the lags of copies, and of each task one lag where there is no copy: it is the same on all such processes.
     * A million pairs of a task and a process are too many to be asked for.
     */
    private CopyLags lags(boolean[] stateful, int[][] holders) {
        long[][] held = new long[ids.length][];
        long[] elsewhere = new long[ids.length];
        for (int task = 0; task < ids.length; task++) {
            if (stateful[task]) {
                held[task] = new long[holders[task].length];
                for (int each = 0; each < held[task].length; each++) {
                    held[task][each] = CopyLags.of(lag(task, holders[task][each]), true);
                }
                elsewhere[task] = CopyLags.of(lag(task, without(holders[task])), false);
            }
        }
        return new CopyLags(settings.acceptableLag(), states.length, holders, held, elsewhere);
    }

    /** Returns the first process that is not one of these, or -1. */
    private int without(int[] holders) {
        for (int process = 0; process < states.length; process++) {
            if (process == holders.length || holders[process] != process) {
                return process;
            }
        }
        return -1;
    }

    /** Returns Kafka's lag, or null where it has none. */
    private Long lag(int task, int process) {
        try {
            return process < 0 ? null : states[process].lagFor(ids[task]);
        } catch (IllegalStateException unknown) {
            return null;
        }
    }
}
