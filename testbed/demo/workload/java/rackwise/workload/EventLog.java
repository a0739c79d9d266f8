package rackwise.workload;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;

/** Changes of assignments in order; beyond a bound the oldest are dropped. */
final class EventLog {
    private static final int MOST = 10_000;

    private final Deque<ObjectNode> events = new ArrayDeque<>();
    private long sequence;

    synchronized void add(final String id, final String group, final String kind, final ObjectNode detail) {
        final ObjectNode event = Json.object().put("seq", ++sequence).put("ms", System.currentTimeMillis())
            .put("who", id).put("group", group).put("kind", kind);
        event.setAll(detail);
        events.addLast(event);
        if (events.size() > MOST) {
            events.removeFirst();
        }
    }

    /** Events with a greater sequence number. */
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
