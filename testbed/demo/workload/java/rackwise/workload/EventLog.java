package rackwise.workload;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;

/** What happened to assignments, in order; the oldest are forgotten beyond a bound. */
final class EventLog {
    private static final int MOST = 10_000;

    private final Deque<ObjectNode> events = new ArrayDeque<>();
    private long sequence;

    synchronized void add(final String who, final String group, final String kind, final ObjectNode detail) {
        final ObjectNode event = Json.object().put("seq", ++sequence).put("ms", System.currentTimeMillis())
            .put("who", who).put("group", group).put("kind", kind);
        event.setAll(detail);
        events.addLast(event);
        if (events.size() > MOST) {
            events.removeFirst();
        }
    }

    /** Events after a sequence number. */
    synchronized ArrayNode since(final long after) {
        final ArrayNode answer = Json.array();
        for (final ObjectNode event : events) {
            if (event.get("seq").asLong() > after) {
                answer.add(event.deepCopy());
            }
        }
        return answer;
    }
}
