import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Properties;
import java.util.Scanner;
import java.util.TreeMap;

/** Reads base64 texts from stdin, one a line; answers each with java.util.Properties' pairs as base64 of UTF-8. */
public class PropertiesOracle {
    public static void main(String[] args) throws Exception {
        Scanner lines = new Scanner(System.in, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            byte[] text = Base64.getDecoder().decode(lines.nextLine());
            Properties properties = new Properties();
            StringBuilder answer = new StringBuilder();
            try {
                properties.load(new ByteArrayInputStream(text));
                for (var pair : new TreeMap<>(properties).entrySet()) {
                    answer.append(encode((String) pair.getKey())).append(':').append(encode((String) pair.getValue())).append(' ');
                }
            } catch (IllegalArgumentException e) {
                answer.append("!");
            }
            System.out.println(answer.toString().trim());
        }
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
