package rackwise.workload;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A Java consumer on a thread of its own that drops its records; classic and cooperative-sticky unless configured. */
final class JavaConsumer extends Thread {
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long CLOSE_WITHIN_MS = 5_000;
    private static final int MOST_READS = 20_000;

    private final ConsumerSpec spec;
    private final EventLog events;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Set<String> held = new TreeSet<>();
    private final Deque<Long> reads = new ArrayDeque<>();
    private final Map<String, Deque<long[]>> runs = new TreeMap<>();
    private volatile boolean reading = true;
    private volatile int generation = -1;
    private volatile String failure;

    JavaConsumer(final ConsumerSpec spec, final String bootstrapServers, final EventLog events) {
        super("consumer-" + spec.id());
        setDaemon(true);
        this.spec = spec;
        this.events = events;
        this.consumer = new KafkaConsumer<>(settings(bootstrapServers));
    }

    @Override
    public void run() {
        try {
            consumer.subscribe(spec.topics(), new Listener());
            while (reading) {
                final ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                if (!records.isEmpty()) {
                    noteRead();
                    noteOffsets(records);
                }
            }
        } catch (final WakeupException woken) {
            if (reading) {
                throw woken;
            }
        } catch (final RuntimeException fatal) {
            failure = fatal.toString();
            events.add(spec.id(), spec.group(), "failed", Json.object().put("error", failure));
        } finally {
            consumer.close(Duration.ofMillis(CLOSE_WITHIN_MS));
        }
    }

    void close() {
        reading = false;
        consumer.wakeup();
        try {
            join(TimeUnit.SECONDS.toMillis(1) + CLOSE_WITHIN_MS);
        } catch (final InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Times of polls with records: epoch milliseconds, oldest first; beyond a bound the oldest are dropped. */
    ArrayNode reads() {
        final ArrayNode answer = Json.array();
        synchronized (reads) {
            reads.forEach(answer::add);
        }
        return answer;
    }

    private void noteRead() {
        synchronized (reads) {
            reads.addLast(System.currentTimeMillis());
            if (reads.size() > MOST_READS) {
                reads.removeFirst();
            }
        }
    }

    /** Partition → runs of consecutive offsets that were read, each as first and last, in the order of reading. */
    ObjectNode offsets() {
        final ObjectNode answer = Json.object();
        synchronized (runs) {
            runs.forEach((partition, all) -> {
                final ArrayNode listed = answer.putArray(partition);
                all.forEach(run -> listed.addArray().add(run[0]).add(run[1]));
            });
        }
        return answer;
    }

    private void noteOffsets(final ConsumerRecords<byte[], byte[]> records) {
        synchronized (runs) {
            for (final ConsumerRecord<byte[], byte[]> record : records) {
                final String partition = record.topic() + "-" + record.partition();
                final Deque<long[]> all = runs.computeIfAbsent(partition, any -> new ArrayDeque<>());
                if (!all.isEmpty() && all.getLast()[1] + 1 == record.offset()) {
                    all.getLast()[1] = record.offset();
                } else {
                    all.addLast(new long[] {record.offset(), record.offset()});
                }
            }
        }
    }

    String id() {
        return spec.id();
    }

    ObjectNode assignment() {
        final ObjectNode answer = Json.object().put("id", spec.id()).put("group", spec.group()).put("rack", spec.rack())
            .put("error", failure);
        putGeneration(answer);
        final ArrayNode partitions = answer.putArray("partitions");
        synchronized (held) {
            held.forEach(partitions::add);
        }
        return answer;
    }

    private void putGeneration(final ObjectNode node) {
        if (generation < 0) {
            node.putNull("generation");
        } else {
            node.put("generation", generation);
        }
    }

    private Properties settings(final String bootstrapServers) {
        final Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers);
        settings.put(ConsumerConfig.GROUP_ID_CONFIG, spec.group());
        settings.put(ConsumerConfig.CLIENT_ID_CONFIG, spec.id());
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class.getName());
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class.getName());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.FETCH_MIN_BYTES_CONFIG, "4096");
        if (!"consumer".equals(spec.settings().get("group.protocol"))) { // which refuses both settings
            settings.put(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG, "10000");
            settings.put(ConsumerConfig.PARTITION_ASSIGNMENT_STRATEGY_CONFIG, CooperativeStickyAssignor.class.getName());
        }
        if (spec.rack() != null) {
            settings.put(ConsumerConfig.CLIENT_RACK_CONFIG, spec.rack());
        }
        settings.putAll(spec.settings());
        return settings;
    }

    /** Runs on the polling thread, the only one that may call the consumer. */
    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(final Collection<TopicPartition> partitions) {
            synchronized (held) {
                partitions.forEach(partition -> held.add(partition.toString()));
            }
            note("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(final Collection<TopicPartition> partitions) {
            drop(partitions);
            note("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(final Collection<TopicPartition> partitions) {
            drop(partitions);
            note("lost", partitions);
        }

        private void drop(final Collection<TopicPartition> partitions) {
            synchronized (held) {
                partitions.forEach(partition -> held.remove(partition.toString()));
            }
        }

        private void note(final String kind, final Collection<TopicPartition> partitions) {
            generation = consumer.groupMetadata().generationId();
            final ObjectNode detail = Json.object();
            putGeneration(detail);
            final ArrayNode names = detail.putArray("partitions");
            partitions.stream().map(TopicPartition::toString).sorted().forEach(names::add);
            events.add(spec.id(), spec.group(), kind, detail);
        }
    }
}
