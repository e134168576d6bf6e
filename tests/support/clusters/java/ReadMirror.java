import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks a cluster what Kafka's own client for MirrorMaker 2 can ask, and prints the answers as one JSON object.
 *
 * Arguments: bootstrap servers, the source's alias, a group, a policy class ("" for the default), a separator.
 */
public class ReadMirror {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", arguments[0]);
        config.put("replication.policy.separator", arguments[4]);
        if (!arguments[3].isEmpty()) {
            config.put("replication.policy.class", arguments[3]);
        }
        String source = arguments[1];
        String group = arguments[2];
        Map<String, String> answers = new TreeMap<>();
        answers.put("translateOffsets", offsets(RemoteClusterUtils.translateOffsets(config, source, group, TIMEOUT)));
        answers.put("replicationHopsByUtils", "" + RemoteClusterUtils.replicationHops(config, source));
        try (MirrorClient client = new MirrorClient(config)) {
            answers.put("remoteConsumerOffsets", offsets(client.remoteConsumerOffsets(group, source, TIMEOUT)));
            answers.put("checkpointTopics", strings(client.checkpointTopics()));
            answers.put("heartbeatTopics", strings(client.heartbeatTopics()));
            answers.put("upstreamClusters", strings(client.upstreamClusters()));
            answers.put("remoteTopics", strings(client.remoteTopics()));
            answers.put("remoteTopicsOfSource", strings(client.remoteTopics(source)));
            Map<String, String> hops = new TreeMap<>();
            for (String cluster : client.upstreamClusters()) {
                hops.put(cluster, "" + client.replicationHops(cluster));
            }
            hops.put("nowhere", "" + client.replicationHops("nowhere"));
            answers.put("replicationHops", object(hops));
        }
        System.out.println(object(answers));
    }

    /** Topic, partition, offset and metadata of each, in order. */
    private static String offsets(Map<TopicPartition, OffsetAndMetadata> found) {
        return found.entrySet().stream()
            .map(one -> "[" + string(one.getKey().topic()) + "," + one.getKey().partition() + ","
                + one.getValue().offset() + "," + string(one.getValue().metadata()) + "]")
            .sorted()
            .collect(Collectors.joining(",", "[", "]"));
    }

    private static String strings(Set<String> found) {
        return new TreeSet<>(found).stream().map(ReadMirror::string).collect(Collectors.joining(",", "[", "]"));
    }

    private static String object(Map<String, String> values) {
        return values.entrySet().stream()
            .map(one -> string(one.getKey()) + ":" + one.getValue())
            .collect(Collectors.joining(",", "{", "}"));
    }

    private static String string(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char character : text.toCharArray()) {
            if (character == '"' || character == '\\' || character < ' ' || character > '~') {
                quoted.append(String.format("\\u%04x", (int) character));
            } else {
                quoted.append(character);
            }
        }
        return quoted.append('"').toString();
    }
}
