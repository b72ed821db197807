import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.WindowedSerdes;

/**
 * The jobs of the benchmark as one writes them by hand for Kafka Streams, with ksqlDB's settings.
 *
 * <p>Arguments: job, brokers, state directory, and one for each pass: sink=counts=topics, counts
 * and topics with commas between them. Prints the seconds of each pass, one after the other, from
 * its first record until everything is read and written; the first passes warm up. A pass with
 * the count 0 runs until the input is closed.
 */
public final class StreamsJob {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration GRACE = Duration.ofHours(24);
  private static final CountDownLatch NEVER = new CountDownLatch(1);

  private final String job;
  private final String sink;
  private final String[] topics;
  private final long[] counts;
  private final LongAdder seen = new LongAdder();
  private final StreamsBuilder builder = new StreamsBuilder();
  private final Serde<JsonNode> json = Serdes.serdeFrom(
      (topic, node) -> node == null ? null : bytes(node),
      (topic, data) -> data == null ? null : node(data));

  private StreamsJob(String job, String pass) {
    String[] parts = pass.split("=");
    this.job = job;
    this.sink = parts[0];
    this.counts = Arrays.stream(parts[1].split(",")).mapToLong(Long::parseLong).toArray();
    this.topics = parts[2].split(",");
  }

  public static void main(String[] args) throws Exception {
    for (int i = 3; i < args.length; i++) {
      new StreamsJob(args[0], args[i]).run(args[1], args[2] + "/" + i);
    }
    System.exit(0);
  }

  private void run(String brokers, String state) throws Exception {
    build();
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, sink);
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, state);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
    // What is cached goes on to the next step of a foreign-key join only with a commit.
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, job.equals("foreign-key") ? 200 : 2000);
    settings.put("auto.offset.reset", "earliest");
    // So that threads that start at the same time do not wait long for one another.
    settings.put("group.instance.id", sink);
    settings.put("session.timeout.ms", 6000);
    settings.put("heartbeat.interval.ms", 500);
    KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
    streams.start();
    if (counts[0] == 0) {
      await(() -> streams.state() == KafkaStreams.State.RUNNING);
      System.out.println("ready");
      while (System.in.read() >= 0) {
        continue;
      }
      streams.close(Duration.ofSeconds(30));
      return;
    }
    // Its threads agree on who reads what; now and then that takes seconds, which is not the work.
    await(() -> seen.sum() > 0 || processed(streams) > 0);
    long began = System.nanoTime();
    long idle = switch (job) {
      case "foreign-key" -> awaitQuiet(streams);
      case "tables" -> {
        await(() -> processed(streams) >= Arrays.stream(counts).sum());
        yield 0;
      }
      case "streams" -> {
        await(() -> seen.sum() >= counts[0] + counts[1]);
        yield 0;
      }
      default -> {
        await(() -> seen.sum() >= counts[0]);
        yield 0;
      }
    };
    streams.close(Duration.ofSeconds(60)); // writes what is still in caches
    System.out.println((System.nanoTime() - began - idle) / 1e9);
  }

  private void build() {
    Produced<String, JsonNode> produced = Produced.with(Serdes.String(), json);
    switch (job) {
      case "filter" -> stream(0)
          .filter((key, value) -> value.get("AMOUNT").asDouble() > 100)
          .mapValues(StreamsJob::projected)
          .to(sink, produced);
      case "aggregate" -> grouped()
          .aggregate(StreamsJob::nothing, StreamsJob::add, Materialized.with(Serdes.String(), json))
          .toStream()
          .to(sink, produced);
      case "tumbling" -> grouped()
          .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), GRACE))
          .aggregate(StreamsJob::nothing, StreamsJob::add, Materialized.with(Serdes.String(), json))
          .toStream()
          .to(sink, Produced.with(
              WindowedSerdes.timeWindowedSerdeFrom(String.class, 60_000L), json));
      case "session" -> grouped()
          .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), GRACE))
          .aggregate(StreamsJob::nothing, StreamsJob::add,
              (key, left, right) -> sum(left, right.get("C").asLong(), right.get("S").asLong()),
              Materialized.with(Serdes.String(), json))
          .toStream()
          .to(sink, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), json));
      case "streams" -> stream(0)
          .join(stream(1), StreamsJob::joined,
              JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(5), GRACE),
              StreamJoined.with(Serdes.String(), json, json))
          .to(sink, produced);
      case "lookup" -> stream(0).leftJoin(table(1), StreamsJob::joined).to(sink, produced);
      case "tables" -> table(0).leftJoin(table(1), StreamsJob::joined).toStream()
          .to(sink, produced);
      case "foreign-key" -> table(0)
          .leftJoin(table(1), value -> value.get("F").asText(), StreamsJob::joined,
              Materialized.with(Serdes.String(), json))
          .toStream()
          .to(sink, produced);
      default -> throw new IllegalArgumentException(job);
    }
  }

  private KStream<String, JsonNode> stream(int source) {
    return builder.stream(topics[source], Consumed.with(Serdes.String(), json))
        .peek((key, value) -> seen.increment());
  }

  private KGroupedStream<String, JsonNode> grouped() {
    return stream(0).groupByKey(Grouped.with(Serdes.String(), json));
  }

  private KTable<String, JsonNode> table(int source) {
    return builder.table(topics[source], Consumed.with(Serdes.String(), json));
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    while (!done.getAsBoolean()) {
      NEVER.await(5, TimeUnit.MILLISECONDS);
    }
  }

  /** Waits until nothing moves any more, in topics between the steps either; how long that was. */
  private long awaitQuiet(KafkaStreams streams) throws InterruptedException {
    long total = Arrays.stream(counts).sum();
    double before = 0;
    long since = System.nanoTime();
    while (before < total || System.nanoTime() - since < 1_500_000_000L) {
      NEVER.await(20, TimeUnit.MILLISECONDS);
      double now = processed(streams);
      if (now != before) {
        before = now;
        since = System.nanoTime();
      }
    }
    return System.nanoTime() - since;
  }

  private static double processed(KafkaStreams streams) {
    return streams.metrics().values().stream()
        .filter(metric -> metric.metricName().name().equals("process-total")
            && metric.metricName().group().equals("stream-thread-metrics"))
        .mapToDouble(metric -> ((Number) metric.metricValue()).doubleValue())
        .sum();
  }

  private static JsonNode projected(JsonNode value) {
    ObjectNode row = JSON.createObjectNode();
    row.set("ID", value.get("ID"));
    row.set("NAME", value.get("NAME"));
    return row.put("TWICE", value.get("AMOUNT").asDouble() * 2);
  }

  private static JsonNode nothing() {
    return JSON.createObjectNode().put("C", 0L).put("S", 0L);
  }

  private static JsonNode add(String key, JsonNode value, JsonNode total) {
    return sum(total, 1, value.get("N").asLong());
  }

  private static JsonNode sum(JsonNode total, long count, long amount) {
    return JSON.createObjectNode()
        .put("C", total.get("C").asLong() + count)
        .put("S", total.get("S").asLong() + amount);
  }

  private static JsonNode joined(JsonNode left, JsonNode right) {
    ObjectNode row = JSON.createObjectNode();
    row.set("A", value(left));
    row.set("B", right == null ? null : value(right));
    return row;
  }

  private static JsonNode value(JsonNode row) {
    return row.has("N") ? row.get("N") : row.get("NAME");
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
