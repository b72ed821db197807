import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** The jobs of the benchmarks as one writes them by hand for Kafka Streams. Prints seconds. */
public final class StreamsJob {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Arguments: job, brokers, records, state directory, sink, topics. */
  public static void main(String[] args) throws Exception {
    String job = args[0];
    long expected = Long.parseLong(args[2]);
    LongAdder seen = new LongAdder();
    StreamsBuilder builder = new StreamsBuilder();
    Serde<JsonNode> json = Serdes.serdeFrom(
        (topic, node) -> node == null ? null : bytes(node),
        (topic, data) -> data == null ? null : node(data));
    KStream<String, JsonNode> records =
        builder.stream(args[5], Consumed.with(Serdes.String(), json));
    Produced<String, JsonNode> produced = Produced.with(Serdes.String(), json);
    if (job.equals("aggregate")) {
      records
          .peek((key, value) -> seen.increment())
          .groupByKey(Grouped.with(Serdes.String(), json))
          .aggregate(StreamsJob::nothing, (key, value, total) -> add(total, value),
              Materialized.with(Serdes.String(), json))
          .toStream()
          .to(args[4], produced);
    } else {
      records
          .peek((key, value) -> seen.increment())
          .leftJoin(builder.table(args[6], Consumed.with(Serdes.String(), json)),
              StreamsJob::joined)
          .to(args[4], produced);
    }
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, args[4]);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[1]);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 2000);
    settings.put("auto.offset.reset", "earliest");
    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    long began = System.nanoTime();
    streams.start();
    CountDownLatch never = new CountDownLatch(1);
    while (seen.sum() < expected) {
      never.await(5, TimeUnit.MILLISECONDS);
    }
    streams.close(Duration.ofSeconds(60)); // writes what is still in caches
    System.out.println((System.nanoTime() - began) / 1e9);
    System.exit(0);
  }

  private static ObjectNode nothing() {
    return JSON.createObjectNode().put("C", 0L).put("S", 0L);
  }

  private static JsonNode add(JsonNode total, JsonNode value) {
    return JSON.createObjectNode()
        .put("C", total.get("C").asLong() + 1)
        .put("S", total.get("S").asLong() + value.get("N").asLong());
  }

  private static JsonNode joined(JsonNode left, JsonNode right) {
    ObjectNode row = JSON.createObjectNode();
    row.set("N", left.get("N"));
    row.set("NAME", right == null ? null : right.get("NAME"));
    return row;
  }

  private static byte[] bytes(JsonNode node) {
    try {
      return JSON.writeValueAsBytes(node);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static JsonNode node(byte[] data) {
    try {
      return JSON.readTree(data);
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
