package rackwise.workload;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.Cache;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;

/** RocksDB for a machine that also runs the brokers: one small cache for all stores, small write buffers. */
public final class SmallRocks implements RocksDBConfigSetter {
    private static final int MEBIBYTE = 1024 * 1024;
    private static Cache shared;

    @Override
    public void setConfig(final String storeName, final Options options, final Map<String, Object> configs) {
        final BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
        table.setBlockCache(sharedCache());
        options.setTableFormatConfig(table);
        options.setWriteBufferSize(2 * MEBIBYTE);
        options.setMaxWriteBufferNumber(2);
    }

    @Override
    public void close(final String storeName, final Options options) {
        // The cache is shared by all stores and exists as long as the process.
    }

    private static synchronized Cache sharedCache() {
        if (shared == null) {
            shared = new LRUCache(8 * MEBIBYTE);
        }
        return shared;
    }
}
