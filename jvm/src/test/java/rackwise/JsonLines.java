package rackwise;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/** Questions on standard input and answers on standard output, each a line of JSON. */
public final class JsonLines {

    private static final ObjectMapper JSON = new ObjectMapper();

    private JsonLines() {
    }

    /** Answers questions until the end of the input. */
    public static void answer(Function<JsonNode, Object> answer) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(answer.apply(JSON.readTree(line))));
            out.flush();
        }
    }
}
