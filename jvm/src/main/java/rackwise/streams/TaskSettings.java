package rackwise.streams;

import java.util.List;

import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;

/**
 * The settings of a Streams application that decide where tasks run.
 *
 * @param trafficCost {@code rack.aware.assignment.traffic_cost}: the price of a partition read across racks
 * @param moveCost {@code rack.aware.assignment.non_overlap_cost}: the price of a task that moves
 * @param standbys {@code num.standby.replicas}
 * @param warmups {@code max.warmup.replicas}
 * @param acceptableLag {@code acceptable.recovery.lag}
 * @param probingIntervalMs {@code probing.rebalance.interval.ms}
 * @param tags {@code rack.aware.assignment.tags}
 */
record TaskSettings(long trafficCost, long moveCost, int standbys, int warmups, long acceptableLag,
                    long probingIntervalMs, List<String> tags) {

    /** What Kafka's own assignor for high availability takes for costs that are not set. */
    private static final int DEFAULT_TRAFFIC_COST = 10;
    private static final int DEFAULT_MOVE_COST = 1;

    /** Reads the settings; {@code rack.aware.assignment.strategy} decides nothing here. */
    static TaskSettings of(AssignmentConfigs configs) {
        return new TaskSettings(
            configs.rackAwareTrafficCost().orElse(DEFAULT_TRAFFIC_COST),
            configs.rackAwareNonOverlapCost().orElse(DEFAULT_MOVE_COST),
            configs.numStandbyReplicas(),
            configs.maxWarmupReplicas(),
            configs.acceptableRecoveryLag(),
            configs.probingRebalanceIntervalMs(),
            List.copyOf(configs.rackAwareAssignmentTags()));
    }
}
