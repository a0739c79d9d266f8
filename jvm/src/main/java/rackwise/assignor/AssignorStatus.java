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

    private final LongSupplier clock;
    private final String type;
    private final String fallback;
    private final Logger log;
    private final AtomicLong assignments = new AtomicLong();
    private final AtomicLong fallbacks = new AtomicLong();
    private final AtomicLong smaller = new AtomicLong();
    private final AtomicLong limited = new AtomicLong();
    private final AtomicLong nextLogMs = new AtomicLong(Long.MIN_VALUE);
    private volatile String lastCause = "";
    private volatile long lastTimeMs = -1;

    /** The status of the assignor of a broker. */
    AssignorStatus(LongSupplier clock) {
        this(clock, "RackwiseAssignor", "The assignor rackwise answers as uniform does");
    }

    /**
     * The status of an assignor.
     *
     * @param clock milliseconds since 1970
     * @param type the class of the assignor, by name, because a consumer cannot load that of brokers
     * @param fallback what the assignor does where it has no answer of its own
     */
    AssignorStatus(LongSupplier clock, String type, String fallback) {
        this.clock = clock;
        this.type = type;
        this.fallback = fallback;
        log = LoggerFactory.getLogger("rackwise.assignor." + type);
    }

    /** Registers the bean {@code rackwise:type=TYPE,node=ID}; a broker without it works as well. */
    void register(String node) {
        registerAs("rackwise:type=" + type + ",node=" + ObjectName.quote(node));
    }

    /** Registers the bean {@code rackwise:type=TYPE}, of all consumers of a JVM. */
    void register() {
        registerAs("rackwise:type=" + type);
    }

    private void registerAs(String bean) {
        try {
            ObjectName name = new ObjectName(bean);
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            if (server.isRegistered(name)) {
                server.unregisterMBean(name);
            }
            server.registerMBean(this, name);
        } catch (JMException | RuntimeException refused) {
            log.warn("The JMX bean {} is not registered", bean, refused);
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
            log.warn("{}; {} times since the start", fallback, fallbacks.get(), cause);
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
