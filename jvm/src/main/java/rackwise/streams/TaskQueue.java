package rackwise.streams;

import java.util.Arrays;
import java.util.stream.Stream;

/** Numbers of tasks on their way through a network. */
final class TaskQueue {

    private int[] tasks = new int[4];
    private int first;
    private int end;

    static TaskQueue[] several(int count) {
        return Stream.generate(TaskQueue::new).limit(count).toArray(TaskQueue[]::new);
    }

    void add(int task) {
        if (end == tasks.length) {
            tasks = Arrays.copyOf(tasks, 2 * end);
        }
        tasks[end++] = task;
    }

    /** Takes the first task out. */
    int next() {
        if (first == end) {
            throw new IllegalStateException("the flow takes more tasks than there are");
        }
        return tasks[first++];
    }

    void moveTo(TaskQueue other, long count) {
        for (long each = 0; each < count; each++) {
            other.add(next());
        }
    }

    void sort() {
        Arrays.sort(tasks, first, end);
    }
}
