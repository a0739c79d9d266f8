package rackwise.assignor;

import java.util.Map;

import org.apache.kafka.common.config.ConfigException;

/**
 * The settings of the assignor, static settings of the broker.
 *
 * @param maxMoves partitions that may change their member for the sake of racks in one assignment, beyond those that
 *     balance moves in any case
 * @param maxPairs pairs of a member and a set of topics with the same subscribers; above, {@code uniform} assigns
 * @param maxBatchBytes size in bytes that the records of one assignment may have, because the coordinator writes
 *     them as one batch
 */
record AssignorSettings(long maxMoves, long maxPairs, long maxBatchBytes) {

    static final String MAX_MOVES = "rackwise.assignor.max.moves";
    static final String MAX_PAIRS = "rackwise.assignor.max.pairs";
    static final String MAX_BATCH_BYTES = "rackwise.assignor.max.batch.bytes";

    static final long UNLIMITED = Long.MAX_VALUE;
    /** The default of {@code message.max.bytes}. */
    private static final long DEFAULT_BATCH_BYTES = 1_048_588;

    static final AssignorSettings DEFAULTS = new AssignorSettings(UNLIMITED, 300_000, DEFAULT_BATCH_BYTES);

    /** Reads the broker's settings. Without {@link #MAX_BATCH_BYTES}, {@code message.max.bytes} is the limit. */
    static AssignorSettings from(Map<String, ?> brokerConfig) {
        long broker = number(brokerConfig, "message.max.bytes", DEFAULT_BATCH_BYTES);
        return new AssignorSettings(
            number(brokerConfig, MAX_MOVES, UNLIMITED),
            number(brokerConfig, MAX_PAIRS, DEFAULTS.maxPairs),
            number(brokerConfig, MAX_BATCH_BYTES, broker));
    }

    AssignorSettings withMaxMoves(long moves) {
        return new AssignorSettings(moves, maxPairs, maxBatchBytes);
    }

    private static long number(Map<String, ?> config, String name, long absent) {
        Object value = config.get(name);
        if (value == null) {
            return absent;
        }
        try {
            long number = Long.parseLong(value.toString().trim());
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException notNumber) {
            // the sentence below says it
        }
        throw new ConfigException(name, value, "a whole number from 0 up is needed");
    }
}
