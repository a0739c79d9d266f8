package rackwise.assignor;

import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Iterator;
import java.util.NoSuchElementException;

/** Partition numbers of one topic, ascending: an immutable set on an array of its own. */
final class PartitionSet extends AbstractSet<Integer> {

    private final int[] numbers;

    /** Takes the array over; its numbers ascend. */
    PartitionSet(int[] numbers) {
        this.numbers = numbers;
    }

    @Override
    public int size() {
        return numbers.length;
    }

    @Override
    public boolean contains(Object number) {
        return number instanceof Integer wanted && Arrays.binarySearch(numbers, wanted) >= 0;
    }

    @Override
    public Iterator<Integer> iterator() {
        return new Iterator<>() {
            private int at;

            @Override
            public boolean hasNext() {
                return at < numbers.length;
            }

            @Override
            public Integer next() {
                if (at == numbers.length) {
                    throw new NoSuchElementException();
                }
                return numbers[at++];
            }
        };
    }
}
