package rackwise.workload;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Executors;

/**
 * The HTTP server of the workload: facts for all readers, control for the process that started it.
 *
 * <pre>
 * GET    /lags?application=ID   see {@link Lags}; the parameter is optional while there is one application
 * GET    /assignment            present tasks and partitions of each instance and consumer
 * GET    /rebalances?since=SEQ  changes of assignments: state, tasks, assigned, revoked, lost, failed
 * GET    /offsets               consumer → partition → runs of offsets that it read
 * GET    /reads                 consumer → times of polls with records, epoch milliseconds
 * GET    /cluster               cluster id, brokers with racks, finalized features
 * POST   /instances             an {@link InstanceSpec}        DELETE /instances/ID?leave=true
 * POST   /consumers             a {@link ConsumerSpec}         DELETE /consumers/ID
 * POST   /group-configs         {"group": ID, "configs": {NAME: VALUE}}
 * </pre>
 *
 * <p>Answers are JSON; a refusal is {@code {"error": SENTENCE}} with status 400, 404, 405 or 500.
 */
final class ControlServer {
    private static final int THREADS = 4;

    private final Host host;
    private final HttpServer server;

    /** Listens on a free port of the loopback interface. */
    ControlServer(final Host host) throws IOException {
        this.host = host;
        this.server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::answer);
        server.setExecutor(Executors.newFixedThreadPool(THREADS, work -> {
            final Thread thread = new Thread(work, "http");
            thread.setDaemon(true);
            return thread;
        }));
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void answer(final HttpExchange exchange) throws IOException {
        int status = 200;
        JsonNode body;
        try {
            body = route(exchange);
        } catch (final Refusal refusal) {
            status = refusal.status;
            body = Json.object().put("error", refusal.getMessage());
        } catch (final IllegalArgumentException | JsonProcessingException invalid) {
            status = 400;
            body = Json.object().put("error", invalid.getMessage());
        } catch (final Exception failure) {
            status = 500;
            body = Json.object().put("error", failure.toString());
        }
        final byte[] bytes = Json.MAPPER.writeValueAsBytes(body);
        exchange.getResponseHeaders().set("Content-Type", "application/json");
        exchange.sendResponseHeaders(status, bytes.length);
        exchange.getResponseBody().write(bytes);
        exchange.close();
    }

    private JsonNode route(final HttpExchange exchange) throws Exception {
        final String path = exchange.getRequestURI().getPath();
        final Map<String, String> query = query(exchange.getRequestURI().getQuery());
        switch (exchange.getRequestMethod()) {
            case "GET":
                return read(path, query);
            case "POST":
                return start(path, Json.MAPPER.readTree(exchange.getRequestBody()));
            case "DELETE":
                return stop(path, query);
            default:
                throw new Refusal(405, "only GET, POST and DELETE are understood here");
        }
    }

    private JsonNode read(final String path, final Map<String, String> query) throws Exception {
        switch (path) {
            case "/lags":
                return Lags.of(application(query.get("application")), host.instances());
            case "/assignment":
                return assignment();
            case "/rebalances":
                return host.events().since(Long.parseLong(query.getOrDefault("since", "0")));
            case "/offsets":
                final ObjectNode offsets = Json.object();
                host.consumers().forEach(consumer -> offsets.set(consumer.id(), consumer.offsets()));
                return offsets;
            case "/reads":
                final ObjectNode reads = Json.object();
                host.consumers().forEach(consumer -> reads.set(consumer.id(), consumer.reads()));
                return reads;
            case "/cluster":
                return host.cluster();
            default:
                throw new Refusal(404, "nothing is served at " + path);
        }
    }

    private JsonNode start(final String path, final JsonNode body) throws Exception {
        switch (path) {
            case "/instances":
                final var instance = host.startInstance(Json.MAPPER.treeToValue(body, InstanceSpec.class));
                return Json.object().put("id", instance.id()).put("process_id", instance.processId());
            case "/consumers":
                host.startConsumer(Json.MAPPER.treeToValue(body, ConsumerSpec.class));
                return Json.object();
            case "/group-configs":
                final Map<String, String> configs = new HashMap<>();
                body.path("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
                host.setGroupConfigs(body.path("group").asText(), configs);
                return Json.object();
            default:
                throw new Refusal(404, "nothing can be started at " + path);
        }
    }

    private JsonNode stop(final String path, final Map<String, String> query) {
        final String id = path.substring(path.lastIndexOf('/') + 1);
        final boolean stopped;
        if (path.startsWith("/instances/")) {
            stopped = host.stopInstance(id, Boolean.parseBoolean(query.getOrDefault("leave", "true")));
        } else if (path.startsWith("/consumers/")) {
            stopped = host.stopConsumer(id);
        } else {
            throw new Refusal(404, "nothing can be stopped at " + path);
        }
        if (!stopped) {
            throw new Refusal(404, "nothing with the id " + id + " is running");
        }
        return Json.object();
    }

    private ObjectNode assignment() {
        final ObjectNode answer = Json.object();
        final ArrayNode instances = answer.putArray("instances");
        for (final StreamsInstance instance : host.instances()) {
            final ObjectNode node = instances.addObject().put("id", instance.id())
                .put("application", instance.application()).put("process_id", instance.processId())
                .put("rack", instance.rack()).put("state", instance.state());
            node.setAll(instance.tasks());
        }
        final ArrayNode consumers = answer.putArray("consumers");
        host.consumers().forEach(consumer -> consumers.add(consumer.assignment()));
        return answer.put("observed_ms", System.currentTimeMillis());
    }

    private String application(final String requested) {
        if (requested != null) {
            return requested;
        }
        final Set<String> applications = new TreeSet<>();
        host.instances().forEach(instance -> applications.add(instance.application()));
        if (applications.size() != 1) {
            throw new Refusal(400, "say which application: /lags?application=ID, one of " + applications);
        }
        return applications.iterator().next();
    }

    private static Map<String, String> query(final String text) {
        final Map<String, String> values = new HashMap<>();
        if (text != null) {
            for (final String pair : text.split("&")) {
                final int equals = pair.indexOf('=');
                if (equals > 0) {
                    values.put(pair.substring(0, equals), pair.substring(equals + 1));
                }
            }
        }
        return values;
    }

    /** An answer other than 200, with its sentence. */
    private static final class Refusal extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int status;

        Refusal(final int status, final String sentence) {
            super(sentence);
            this.status = status;
        }
    }
}
