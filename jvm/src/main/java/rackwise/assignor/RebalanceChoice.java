package rackwise.assignor;

import java.util.Collection;
import java.util.List;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol;

/**
 * How a consumer revokes partitions before a rebalance: cooperatively, unless one of its assignors cannot. A member's
 * note says which, so it has to be known before the consumer has made the same choice.
 */
final class RebalanceChoice {

    private RebalanceChoice() {
    }

    /**
     * Returns how a consumer revokes.
     *
     * @param strategy the consumer's {@code partition.assignment.strategy}: classes or names, a list or one text
     */
    static RebalanceProtocol of(Object strategy) {
        Collection<?> assignors = strategy instanceof Collection<?> list ? list
            : strategy instanceof Class<?> one ? List.of(one)
            : List.of(String.valueOf(strategy).split(","));
        boolean cooperative = !assignors.isEmpty() && assignors.stream().allMatch(RebalanceChoice::isCooperative);
        return cooperative ? RebalanceProtocol.COOPERATIVE : RebalanceProtocol.EAGER;
    }

    private static boolean isCooperative(Object assignor) {
        try {
            Class<?> type = assignor instanceof Class<?> given ? given : load(assignor.toString().trim());
            return type == RackwiseConsumerAssignor.class
                || ((ConsumerPartitionAssignor) type.getDeclaredConstructor().newInstance())
                    .supportedProtocols().contains(RebalanceProtocol.COOPERATIVE);
        } catch (ReflectiveOperationException | LinkageError | RuntimeException unusable) {
            // The consumer says what is wrong with it.
            return false;
        }
    }

    private static Class<?> load(String name) throws ClassNotFoundException {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        return Class.forName(name, true, context == null ? RebalanceChoice.class.getClassLoader() : context);
    }
}
