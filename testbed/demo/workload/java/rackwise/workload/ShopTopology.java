package rackwise.workload;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The application: the latest order of each customer, and the number of orders of each region.
 *
 * <pre>
 * subtopology 0   input ──► [customers] ──► repartition topic "regions"
 * subtopology 1   "regions" ──► [regions]
 * then the optional ones, in this order:
 *                 stateless input ──► stateless output
 *                 table input ──► [products], whose changelog is the table input itself
 *                 unlogged input ──► [sightings], without a changelog
 * </pre>
 */
final class ShopTopology {
    static final String CUSTOMERS = "customers";
    static final String REGIONS = "regions";
    static final String PRODUCTS = "products";
    static final String SIGHTINGS = "sightings";

    private static final int REGION_COUNT = 5_000;
    private static final Serde<String> STRING = Serdes.String();
    private static final Serde<byte[]> BYTES = Serdes.ByteArray();

    private ShopTopology() {
    }

    static Topology build(final TopologySpec spec, final Properties settings) {
        final StreamsBuilder builder = new StreamsBuilder();
        addCustomersAndRegions(builder, spec);
        if (spec.statelessInput() != null) {
            stream(builder, spec.statelessInput()).to(spec.statelessOutput(), Produced.with(STRING, BYTES));
        }
        if (spec.tableInput() != null) {
            builder.table(spec.tableInput(), Consumed.with(STRING, BYTES),
                Materialized.<String, byte[]>as(Stores.persistentKeyValueStore(PRODUCTS))
                    .withKeySerde(STRING).withValueSerde(BYTES).withCachingDisabled());
        }
        if (spec.unloggedInput() != null) {
            addSightings(builder, spec.unloggedInput());
        }
        return builder.build(settings);
    }

    /** Subtopology → names of its stores, also of those without a changelog. */
    static Map<Integer, Set<String>> storesBySubtopology(final Topology topology) {
        final Map<Integer, Set<String>> stores = new HashMap<>();
        for (final TopologyDescription.Subtopology subtopology : topology.describe().subtopologies()) {
            final Set<String> names = stores.computeIfAbsent(subtopology.id(), id -> new TreeSet<>());
            for (final TopologyDescription.Node node : subtopology.nodes()) {
                if (node instanceof TopologyDescription.Processor) {
                    names.addAll(((TopologyDescription.Processor) node).stores());
                }
            }
        }
        return stores;
    }

    private static void addCustomersAndRegions(final StreamsBuilder builder, final TopologySpec spec) {
        builder.addStateStore(customersStore(spec));
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(REGIONS), STRING, BYTES)
            .withCachingDisabled().withLoggingEnabled(Map.of()));
        stream(builder, spec.input())
            .process(() -> new KeepLatest(CUSTOMERS, spec.forwardEvery()), CUSTOMERS)
            .selectKey((customer, order) -> "r" + Math.floorMod(customer.hashCode(), REGION_COUNT))
            .repartition(Repartitioned.with(STRING, BYTES).withName(REGIONS)
                .withNumberOfPartitions(spec.regionPartitions()))
            .process(() -> new Count(REGIONS), REGIONS);
    }

    private static StoreBuilder<KeyValueStore<String, byte[]>> customersStore(final TopologySpec spec) {
        final var supplier = spec.restoreRecordsPerS() > 0
            ? ThrottledStore.supplier(CUSTOMERS, spec.restoreRecordsPerS())
            : Stores.persistentKeyValueStore(CUSTOMERS);
        return Stores.keyValueStoreBuilder(supplier, STRING, BYTES).withCachingDisabled().withLoggingEnabled(Map.of());
    }

    private static void addSightings(final StreamsBuilder builder, final String input) {
        builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(SIGHTINGS), STRING, BYTES)
            .withCachingDisabled().withLoggingDisabled());
        stream(builder, input).process(() -> new Count(SIGHTINGS), SIGHTINGS);
    }

    private static KStream<String, byte[]> stream(final StreamsBuilder builder, final String topic) {
        return builder.stream(topic, Consumed.with(STRING, BYTES));
    }

    /** Keeps the last value of each key, and forwards every n-th record. */
    private static final class KeepLatest extends ContextualProcessor<String, byte[], String, byte[]> {
        private final String storeName;
        private final int forwardEvery;
        private KeyValueStore<String, byte[]> store;
        private long records;

        KeepLatest(final String storeName, final int forwardEvery) {
            this.storeName = storeName;
            this.forwardEvery = forwardEvery;
        }

        @Override
        public void init(final ProcessorContext<String, byte[]> context) {
            super.init(context);
            store = context.getStateStore(storeName);
        }

        @Override
        public void process(final Record<String, byte[]> record) {
            store.put(record.key(), record.value());
            if (records++ % forwardEvery == 0) {
                context().forward(record);
            }
        }
    }

    /** Counts the records of each key, as eight bytes. */
    private static final class Count extends ContextualProcessor<String, byte[], Void, Void> {
        private final String storeName;
        private KeyValueStore<String, byte[]> store;

        Count(final String storeName) {
            this.storeName = storeName;
        }

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            super.init(context);
            store = context.getStateStore(storeName);
        }

        @Override
        public void process(final Record<String, byte[]> record) {
            final byte[] before = store.get(record.key());
            final long count = before == null ? 0 : ByteBuffer.wrap(before).getLong();
            store.put(record.key(), ByteBuffer.allocate(Long.BYTES).putLong(count + 1).array());
        }
    }
}
