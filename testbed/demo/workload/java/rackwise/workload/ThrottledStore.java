package rackwise.workload;

import java.util.Collection;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.BatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * An in-memory store that restores at a bounded rate, so that a warm-up takes as long as a test needs.
 *
 * <p>The wait is in the restore callback, on the thread that restores: several warm-ups of one stream thread share the
 * bound. Writing while active is not slowed. Standbys are fed through the same callback, so a bound below the rate at
 * which the active writes makes a standby that never catches up, as some tests need.
 */
final class ThrottledStore implements KeyValueStore<Bytes, byte[]> {
    private static final long LONGEST_PAUSE_MS = 250;

    private final String name;
    private final int restoreRecordsPerS;
    private final NavigableMap<Bytes, byte[]> entries = new ConcurrentSkipListMap<>();
    private final Position position = Position.emptyPosition();
    private volatile boolean open;

    private ThrottledStore(final String name, final int restoreRecordsPerS) {
        this.name = name;
        this.restoreRecordsPerS = restoreRecordsPerS;
    }

    static KeyValueBytesStoreSupplier supplier(final String name, final int restoreRecordsPerS) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new ThrottledStore(name, restoreRecordsPerS);
            }

            @Override
            public String metricsScope() {
                return "throttled";
            }
        };
    }

    @Override
    public void init(final StateStoreContext context, final StateStore root) {
        context.register(root, (BatchingStateRestoreCallback) this::restore);
        open = true;
    }

    /** The older form, abstract in Kafka 3 and gone in Kafka 4: no {@code @Override}, so that both compile. */
    public void init(final ProcessorContext context, final StateStore root) {
        throw new UnsupportedOperationException("this store is only opened with a StateStoreContext");
    }

    private void restore(final Collection<KeyValue<byte[], byte[]>> records) {
        for (final KeyValue<byte[], byte[]> record : records) {
            put(Bytes.wrap(record.key), record.value);
        }
        pause(records.size() * 1_000L / restoreRecordsPerS);
    }

    private void pause(final long durationMs) {
        final long untilNs = System.nanoTime() + durationMs * 1_000_000L;
        // In slices, and only while open: closing the instance must not wait for the whole pause.
        for (long leftMs = durationMs; leftMs > 0 && open; leftMs = (untilNs - System.nanoTime()) / 1_000_000L) {
            try {
                Thread.sleep(Math.min(leftMs, LONGEST_PAUSE_MS));
            } catch (final InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public boolean persistent() {
        return false;
    }

    @Override
    public boolean isOpen() {
        return open;
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public void flush() {
        // Nothing is buffered.
    }

    @Override
    public void close() {
        open = false;
        entries.clear();
    }

    @Override
    public byte[] get(final Bytes key) {
        return entries.get(key);
    }

    @Override
    public void put(final Bytes key, final byte[] value) {
        if (value == null) {
            entries.remove(key);
        } else {
            entries.put(key, value);
        }
    }

    @Override
    public byte[] putIfAbsent(final Bytes key, final byte[] value) {
        final byte[] before = get(key);
        if (before == null) {
            put(key, value);
        }
        return before;
    }

    @Override
    public void putAll(final List<KeyValue<Bytes, byte[]>> records) {
        for (final KeyValue<Bytes, byte[]> record : records) {
            put(record.key, record.value);
        }
    }

    @Override
    public byte[] delete(final Bytes key) {
        return entries.remove(key);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(final Bytes from, final Bytes to) {
        NavigableMap<Bytes, byte[]> part = entries;
        if (from != null) {
            part = part.tailMap(from, true);
        }
        if (to != null) {
            part = part.headMap(to, true);
        }
        return new Entries(part.entrySet().iterator());
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return new Entries(entries.entrySet().iterator());
    }

    @Override
    public long approximateNumEntries() {
        return entries.size();
    }

    /** Walks the live map: what is written meanwhile may or may not be seen. */
    private static final class Entries implements KeyValueIterator<Bytes, byte[]> {
        private final Iterator<Map.Entry<Bytes, byte[]>> iterator;
        private Map.Entry<Bytes, byte[]> ahead;

        Entries(final Iterator<Map.Entry<Bytes, byte[]>> iterator) {
            this.iterator = iterator;
        }

        @Override
        public boolean hasNext() {
            return ahead != null || iterator.hasNext();
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            final Map.Entry<Bytes, byte[]> entry = ahead == null ? iterator.next() : ahead;
            ahead = null;
            return KeyValue.pair(entry.getKey(), entry.getValue());
        }

        @Override
        public Bytes peekNextKey() {
            if (ahead == null) {
                ahead = iterator.next();
            }
            return ahead.getKey();
        }

        @Override
        public void close() {
            // The map is in memory; nothing is held.
        }
    }
}
