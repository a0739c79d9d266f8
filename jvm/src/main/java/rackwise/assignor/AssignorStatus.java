package rackwise.assignor;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Counts what the assignor does, for JMX, and logs causes of fallbacks at most once a minute. No answer reads it. */
final class AssignorStatus implements AssignorStatusMXBean {

    static final long LOG_INTERVAL_MS = 60_000;

    private static final Logger LOG = LoggerFactory.getLogger(RackwiseAssignor.class);

    private final LongSupplier clock;
    private final AtomicLong assignments = new AtomicLong();
    private final AtomicLong fallbacks = new AtomicLong();
    private final AtomicLong smaller = new AtomicLong();
    private final AtomicLong limited = new AtomicLong();
    private final AtomicLong nextLogMs = new AtomicLong(Long.MIN_VALUE);
    private volatile String lastCause = "";
    private volatile long lastTimeMs = -1;

    AssignorStatus(LongSupplier clock) {
        this.clock = clock;
    }

    /** Registers the bean {@code rackwise:type=RackwiseAssignor,node=ID}; a broker without it works as well. */
    void register(String node) {
        try {
            ObjectName name = new ObjectName("rackwise:type=RackwiseAssignor,node=" + ObjectName.quote(node));
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            if (server.isRegistered(name)) {
                server.unregisterMBean(name);
            }
            server.registerMBean(this, name);
        } catch (JMException | RuntimeException refused) {
            LOG.warn("The JMX bean of the assignor {} is not registered", RackwiseAssignor.NAME, refused);
        }
    }

    void answered() {
        assignments.incrementAndGet();
    }

    void steppedDown() {
        smaller.incrementAndGet();
    }

    void limited() {
        limited.incrementAndGet();
    }

    /** Counts a fallback and reports its cause. */
    void fellBack(Throwable cause) {
        fallbacks.incrementAndGet();
        report(cause);
    }

    /** Keeps the cause of a fallback; logs it, and returns true, unless one was logged within a minute. */
    boolean report(Throwable cause) {
        long now = clock.getAsLong();
        lastCause = String.valueOf(cause);
        lastTimeMs = now;
        long due = nextLogMs.get();
        boolean logged = now >= due && nextLogMs.compareAndSet(due, now + LOG_INTERVAL_MS);
        if (logged) {
            LOG.warn("The assignor {} answers as uniform does; {} times since the broker started",
                RackwiseAssignor.NAME, fallbacks.get(), cause);
        }
        return logged;
    }

    @Override
    public long getAssignments() {
        return assignments.get();
    }

    @Override
    public long getFallbacks() {
        return fallbacks.get();
    }

    @Override
    public String getLastFallbackCause() {
        return lastCause;
    }

    @Override
    public long getLastFallbackTimeMs() {
        return lastTimeMs;
    }

    @Override
    public long getSmallerAssignments() {
        return smaller.get();
    }

    @Override
    public long getLimitedAssignments() {
        return limited.get();
    }
}
