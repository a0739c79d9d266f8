package rackwise.assignor;

/** What the assignor of this broker has done since the broker started, as JMX shows it. */
public interface AssignorStatusMXBean {

    /** Returns the number of assignments that are optimal within their limits. */
    long getAssignments();

    /** Returns the number of assignments that {@code uniform} made instead, or in its absence a plain deal. */
    long getFallbacks();

    /** Returns the cause of the latest of these, or an empty text. */
    String getLastFallbackCause();

    /** Returns the time of the latest of these in milliseconds since 1970, or -1. */
    long getLastFallbackTimeMs();

    /** Returns the number of assignments with fewer or shorter records, because a batch was too small. */
    long getSmallerAssignments();

    /** Returns the number of assignments in which a limit kept partitions from moving to a better rack. */
    long getLimitedAssignments();
}
