package rackwise.workload;

import com.fasterxml.jackson.annotation.JsonProperty;

/**
 * Parts of the application's topology; the optional ones are null when absent.
 *
 * <p>Each name has its annotation: Jackson before 2.15 does not apply a naming strategy to records.
 *
 * @param input             topic read by subtopology 0
 * @param regionPartitions  partitions of the repartition topic read by subtopology 1
 * @param forwardEvery      subtopology 0 forwards every n-th record to subtopology 1
 * @param restoreRecordsPerS upper bound for restoring the store {@code customers}, per stream thread; 0 is no bound
 * @param statelessInput    topic of a further subtopology without any store
 * @param statelessOutput   output topic of that subtopology
 * @param tableInput        topic of a further subtopology whose store has this very topic as its changelog
 * @param unloggedInput     topic of a further subtopology whose store has no changelog at all
 */
record TopologySpec(@JsonProperty("input") String input,
                    @JsonProperty("region_partitions") int regionPartitions,
                    @JsonProperty("forward_every") int forwardEvery,
                    @JsonProperty("restore_records_per_s") int restoreRecordsPerS,
                    @JsonProperty("stateless_input") String statelessInput,
                    @JsonProperty("stateless_output") String statelessOutput,
                    @JsonProperty("table_input") String tableInput,
                    @JsonProperty("unlogged_input") String unloggedInput) {
    TopologySpec {
        if (input == null) {
            throw new IllegalArgumentException("topology.input is missing: the topic that subtopology 0 reads");
        }
        if (statelessInput != null && statelessOutput == null) {
            throw new IllegalArgumentException("topology.stateless_input needs topology.stateless_output");
        }
        regionPartitions = regionPartitions == 0 ? 3 : regionPartitions;
        forwardEvery = forwardEvery == 0 ? 1 : forwardEvery;
    }
}
