package rackwise.workload;

/**
 * Which parts the application's topology has; the optional ones are null when absent.
 *
 * @param input             topic read by subtopology 0
 * @param regionPartitions  partitions of the repartition topic read by subtopology 1
 * @param forwardEvery      subtopology 0 sends one record in so many on to subtopology 1
 * @param restoreRecordsPerS upper bound for restoring the store {@code customers}, per stream thread; 0 is no bound
 * @param statelessInput    topic of a further subtopology without any store
 * @param statelessOutput   where that subtopology writes
 * @param tableInput        topic of a further subtopology whose store has this very topic as its changelog
 * @param unloggedInput     topic of a further subtopology whose store has no changelog at all
 */
record TopologySpec(String input, int regionPartitions, int forwardEvery, int restoreRecordsPerS,
                    String statelessInput, String statelessOutput, String tableInput, String unloggedInput) {
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
