import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of Apache Kafka's Java client. Its lines are those of ../rules.py. */
public class Member implements ConsumerRebalanceListener {
    private static final FileOutputStream LINES = new FileOutputStream(FileDescriptor.out);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final String name;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
    private volatile boolean leaving;

    private Member(String name, Map<String, Object> settings) {
        this.name = name;
        this.consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public static void main(String[] arguments) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", arguments[1],
            "partition.assignment.strategy", ASSIGNORS.get(arguments[4]),
            "session.timeout.ms", arguments[5],
            "max.poll.interval.ms", arguments[6],
            "heartbeat.interval.ms", arguments[7],
            "enable.auto.commit", "false",
            "auto.offset.reset", "earliest"));
        if (!arguments[8].isEmpty()) {
            settings.put("group.instance.id", arguments[8]);
        }
        new Member(arguments[3], settings).run(arguments[2]);
    }

    private void run(String topic) {
        Thread reader = Thread.currentThread();
        try (consumer) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> leave(reader)));
            consumer.subscribe(List.of(topic), this);
            while (!leaving) {
                read();
            }
        }
        say("LEFT", "");
    }

    private void read() {
        var records = consumer.poll(Duration.ofMillis(100));
        records.forEach(record -> say("RECORD", record.partition() + " " + record.offset()));
        records.partitions().forEach(partition -> read.put(partition, records.nextOffsets().get(partition)));
        commit();
    }

    private void commit() {
        if (read.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(read);
        } catch (RebalanceInProgressException rebalancing) {
            // In a cooperative rebalance the client reads on; it commits when the next poll has brought the rebalance to its end.
            return;
        }
        read.forEach((partition, next) -> say("COMMITTED", partition.partition() + " " + next.offset()));
        read.clear();
    }

    private void leave(Thread reader) {
        leaving = true;
        try {
            reader.join();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        // Java would end with the signal's number.
        Runtime.getRuntime().halt(0);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        say("ASSIGNED", text(partitions));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        say("REVOKED", text(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        say("LOST", text(partitions));
    }

    private static String text(Collection<TopicPartition> partitions) {
        return partitions.stream().map(partition -> String.valueOf(partition.partition())).collect(Collectors.joining(" "));
    }

    private void say(String event, String rest) {
        try {
            LINES.write((name + " " + event + " " + rest + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
