package rackwise.streams;

import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/**
 * A Streams application as arrays over tasks and processes, both in ascending order of their ids.
 *
 * @param tasks the tasks
 * @param processes the processes
 * @param lags how far copies are behind
 * @param settings what the application configures
 */
record ApplicationModel(Tasks tasks, Processes processes, CopyLags lags, TaskSettings settings) {

    /**
     * The tasks.
     *
     * @param ids the ids
     * @param subtopology task to a number from 0 up, equal for tasks of one subtopology
     * @param subtopologies the number of subtopologies
     * @param stateful task to whether it has a changelog: only such tasks have standbys and warm-ups
     * @param owner task to the process that runs it, or -1 when none or several do
     * @param holders task to the processes that have a copy of its state, active or not, ascending
     * @param sources the source partitions by task
     * @param changelogs the changelog partitions by task
     */
    record Tasks(TaskId[] ids, int[] subtopology, int subtopologies, boolean[] stateful, int[] owner, int[][] holders,
                 RackMisses sources, RackMisses changelogs) {

        int count() {
            return ids.length;
        }
    }

    /**
     * How many partitions of a task have no replica in a rack.
     *
     * @param kind task to its kind; tasks whose partitions miss the same racks are of one kind
     * @param misses kind and rack to partitions; the last rack is that of processes without one
     */
    record RackMisses(int[] kind, int[][] misses) {

        int of(int task, int rack) {
            return misses[kind[task]][rack];
        }
    }

    /**
     * The processes.
     *
     * @param ids the ids
     * @param rack process to its rack, a number from 0 up; {@code racks} for none
     * @param racks the number of racks with processes
     * @param capacity process to its number of threads
     * @param profile process to the values that copies of a task should not share; null is unknown
     */
    record Processes(ProcessId[] ids, int[] rack, int racks, int[] capacity, String[][] profile) {

        int count() {
            return ids.length;
        }
    }
}
