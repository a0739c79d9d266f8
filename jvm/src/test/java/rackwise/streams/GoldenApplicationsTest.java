package rackwise.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.junit.jupiter.api.Test;

/**
 * Every application of the golden file, which {@code assignors.optimal_tasks} has solved, costs the same here, and
 * standbys for the active tasks found there are as good.
 */
class GoldenApplicationsTest {

    private static final Path FILE = Path.of("src", "test", "resources", "applications.jsonl");
    private static final ObjectMapper JSON = new ObjectMapper();

    @Test
    void everyApplicationHasTheFiguresOfTheOptimum() throws IOException {
        List<String> lines = Files.readAllLines(FILE);
        assertTrue(lines.size() >= 300, lines.size() + " applications");
        for (int number = 0; number < lines.size(); number++) {
            JsonNode json = JSON.readTree(lines.get(number));
            String line = "line " + (number + 1);
            ApplicationModel model = ApplicationCase.of(json).model();
            JsonNode optimum = json.get("optimum");
            int[] placed = new TaskNetwork(model, TaskShares.of(model)).place();
            TaskFigures figures = TaskFigures.of(model, placed);
            TaskFigures.assertFair(model, placed);
            assertEquals(optimum.get("cost").asLong(), figures.cost(model), line);
            if (optimum.get("unique").asBoolean()) {
                long crossing = optimum.get("crossing").asLong();
                assertEquals(new TaskFigures(crossing, optimum.get("moved").asLong()), figures, line);
            }
            compareStandbys(model, optimum, line);
        }
    }

    private static void compareStandbys(ApplicationModel model, JsonNode optimum, String line) {
        int[] active = new int[model.tasks().count()];
        for (int task = 0; task < active.length; task++) {
            active[task] = optimum.get("process").get(task).asInt();
        }
        StandbyCase standbys = new StandbyCase(model, active);
        StandbyCase.Quality found = standbys.quality(StandbyPlacer.place(standbys));
        JsonNode best = optimum.get("standbys");
        assertEquals(best.get("shared").asLong(), found.shared(), line);
        if (best.get("one_flow").asBoolean()) {
            assertEquals(best.get("imbalance").asLong(), found.imbalance(), line);
            assertEquals(best.get("cost").asLong(), found.cost(), line);
        }
    }
}
