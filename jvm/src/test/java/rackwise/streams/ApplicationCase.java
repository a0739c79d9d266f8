package rackwise.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.DefaultKafkaStreamsState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;

/**
 * An application by names, and as Kafka's own classes.
 *
 * @param tasks task to what it reads and writes
 * @param processes the processes, by id
 * @param settings the settings, by short names
 */
record ApplicationCase(Map<String, Task> tasks, Map<String, Process> processes, Map<String, JsonNode> settings) {

    /**
     * One task by names.
     *
     * @param sources the racks of each source partition; null when they are not known
     * @param changelogs the racks of each changelog partition
     */
    record Task(boolean stateful, List<Set<String>> sources, List<Set<String>> changelogs) {
    }

    /**
     * One process by names.
     *
     * @param rack null for none
     * @param threads its capacity
     * @param tags its client tags
     * @param active tasks that it runs
     * @param standby tasks that it has another copy of
     * @param lags task to lag as Kafka tells it; tasks that are not named have {@code end}
     */
    record Process(String rack, int threads, Map<String, String> tags, Set<String> active, Set<String> standby,
                   Map<String, Long> lags) {
    }

    static ApplicationCase of(JsonNode json) {
        Map<String, Task> tasks = new LinkedHashMap<>();
        json.get("tasks").properties().forEach(task -> tasks.put(task.getKey(), new Task(
            task.getValue().get("stateful").asBoolean(),
            racks(task.getValue().get("sources")), racks(task.getValue().get("changelogs")))));
        Map<String, Process> processes = new LinkedHashMap<>();
        json.get("processes").properties().forEach(entry -> {
            JsonNode process = entry.getValue();
            Map<String, String> tags = new HashMap<>();
            process.get("tags").properties().forEach(tag -> tags.put(tag.getKey(), tag.getValue().asText()));
            Map<String, Long> lags = new HashMap<>();
            process.get("lags").properties().forEach(lag -> lags.put(lag.getKey(), lag.getValue().asLong()));
            processes.put(entry.getKey(), new Process(process.get("rack").textValue(),
                process.get("threads").asInt(), tags, names(process.get("active")), names(process.get("standby")),
                lags));
        });
        Map<String, JsonNode> settings = new HashMap<>();
        json.get("settings").properties().forEach(each -> settings.put(each.getKey(), each.getValue()));
        return new ApplicationCase(tasks, processes, settings);
    }

    private static Set<String> names(JsonNode json) {
        Set<String> names = new TreeSet<>();
        json.forEach(each -> names.add(each.asText()));
        return names;
    }

    private static List<Set<String>> racks(JsonNode json) {
        List<Set<String>> racks = new ArrayList<>();
        json.forEach(each -> racks.add(each.isNull() ? null : names(each)));
        return racks;
    }

    ApplicationState state() {
        Map<TaskId, TaskInfo> infos = new HashMap<>();
        tasks.forEach((id, task) -> infos.put(TaskId.parse(id), info(TaskId.parse(id), task)));
        Map<ProcessId, KafkaStreamsState> states = new HashMap<>();
        processes.forEach((id, process) -> states.put(processId(id), state(processId(id), process)));
        AssignmentConfigs configs = configs();
        return new ApplicationState() {
            @Override
            public Map<ProcessId, KafkaStreamsState> kafkaStreamsStates(boolean computeTaskLags) {
                return states;
            }

            @Override
            public AssignmentConfigs assignmentConfigs() {
                return configs;
            }

            @Override
            public Map<TaskId, TaskInfo> allTasks() {
                return infos;
            }
        };
    }

    ApplicationModel model() {
        return ApplicationReader.read(state());
    }

    private static ProcessId processId(String id) {
        return new ProcessId(UUID.fromString(id));
    }

    private static TaskInfo info(TaskId id, Task task) {
        Set<TaskTopicPartition> partitions = new HashSet<>();
        for (int number = 0; number < task.sources.size(); number++) {
            partitions.add(partition("in-" + id.subtopology() + "-" + number, id, true, task.sources.get(number)));
        }
        for (int number = 0; number < task.changelogs.size(); number++) {
            partitions.add(partition("log-" + id.subtopology() + "-" + number, id, false, task.changelogs.get(number)));
        }
        return new DefaultTaskInfo(id, task.stateful, task.stateful ? Set.of("store") : Set.of(), partitions);
    }

    private static TaskTopicPartition partition(String topic, TaskId id, boolean source, Set<String> racks) {
        DefaultTaskTopicPartition partition = new DefaultTaskTopicPartition(
            new TopicPartition(topic, id.partition()), source, !source, () -> { });
        if (racks != null) {
            partition.annotateWithRackIds(racks);
        }
        return partition;
    }

    private KafkaStreamsState state(ProcessId id, Process process) {
        Map<TaskId, Long> lags = new HashMap<>();
        tasks.forEach((name, task) -> {
            if (task.stateful && !task.changelogs.isEmpty()) {
                lags.put(TaskId.parse(name), process.lags.getOrDefault(name, number("end")));
            }
        });
        return new DefaultKafkaStreamsState(id, process.threads, process.tags, ids(process.active),
            ids(process.standby), new TreeMap<>(Map.of("consumer", Set.of())), Optional.empty(), Optional.of(lags),
            Optional.ofNullable(process.rack));
    }

    private static TreeSet<TaskId> ids(Set<String> names) {
        TreeSet<TaskId> ids = new TreeSet<>();
        names.forEach(name -> ids.add(TaskId.parse(name)));
        return ids;
    }

    long number(String setting) {
        return settings.get(setting).asLong();
    }

    private AssignmentConfigs configs() {
        List<String> tags = new ArrayList<>();
        settings.get("tags").forEach(tag -> tags.add(tag.asText()));
        return new AssignmentConfigs(number("acceptable_lag"), (int) number("warmups"), (int) number("standbys"),
            60_000L, tags, OptionalInt.of((int) number("traffic_cost")), OptionalInt.of((int) number("move_cost")),
            "none");
    }

    /** Returns process to the tasks that an answer gives it in a role, by names. */
    static Map<String, Set<String>> given(TaskAssignment answer, KafkaStreamsAssignment.AssignedTask.Type type) {
        Map<String, Set<String>> given = new TreeMap<>();
        answer.assignment().forEach(process -> {
            Set<String> mine = given.computeIfAbsent(process.processId().id().toString(), each -> new TreeSet<>());
            process.tasks().values().stream().filter(task -> task.type() == type)
                .forEach(task -> mine.add(task.id().toString()));
        });
        return given;
    }
}
