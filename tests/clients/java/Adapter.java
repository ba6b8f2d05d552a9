import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The adapter of Apache Kafka's Java client. The commands are those of ../go/main.go, the lines of records those of ../records.py. */
public class Adapter {
    private static final int DEADLINE_S = 45;

    private final String broker;
    private final Admin admin;

    private Adapter(String broker) {
        this.broker = broker;
        this.admin = Admin.create(Map.of("bootstrap.servers", broker));
    }

    public static void main(String[] arguments) throws Exception {
        Adapter adapter = new Adapter(arguments[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            try {
                adapter.run(line.split(" "));
                System.out.println("ok");
            } catch (Exception failure) {
                System.out.println("failed: " + failure.toString().replace('\n', ';'));
            }
        }
    }

    private void run(String[] command) throws Exception {
        switch (command[0]) {
            case "create" -> admin.createTopics(List.of(new NewTopic(command[1], Optional.of(Integer.valueOf(command[2])), Optional.empty())))
                .all().get(DEADLINE_S, TimeUnit.SECONDS);
            case "produce" -> produce(command[1], command[2], Path.of(command[3]));
            case "consume" -> consume(command[1], Path.of(command[2]), Arrays.copyOfRange(command, 3, command.length));
            case "delete" -> admin.deleteTopics(List.of(command[1])).all().get(DEADLINE_S, TimeUnit.SECONDS);
            default -> throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    /** Uses the producer's defaults, which are idempotence and acks=all. */
    private void produce(String topic, String codec, Path file) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", broker, "compression.type", codec, "linger.ms", 20, "batch.size", 32768);
        List<String> lines = Files.readAllLines(file);
        List<Future<RecordMetadata>> acks = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (String line : lines) {
                acks.add(producer.send(parse(topic, line.split("\t", -1))));
            }
            for (int i = 0; i < acks.size(); i++) {
                RecordMetadata acked = acks.get(i).get(DEADLINE_S, TimeUnit.SECONDS);
                String[] sent = lines.get(i).split("\t", 3);
                if (acked.offset() != Long.parseLong(sent[1])) {
                    throw new IllegalStateException("partition " + sent[0] + ": record " + sent[1] + " was acked at offset " + acked.offset());
                }
            }
        }
    }

    private void consume(String topic, Path file, String[] spans) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", broker, "auto.offset.reset", "none");
        List<String> lines = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<long[]> wanted = Arrays.stream(spans).map(s -> Arrays.stream(s.split(":")).mapToLong(Long::parseLong).toArray()).toList();
            consumer.assign(wanted.stream().map(span -> new TopicPartition(topic, (int) span[0])).toList());
            wanted.forEach(span -> consumer.seek(new TopicPartition(topic, (int) span[0]), span[1]));
            long missing = wanted.stream().mapToLong(span -> span[2]).sum();
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_S);
            while (lines.size() < missing) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no more than " + lines.size() + " of " + missing + " records in " + DEADLINE_S + " s");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    lines.add(line(record));
                }
            }
        }
        Files.write(file, lines);
    }

    private static ProducerRecord<byte[], byte[]> parse(String topic, String[] fields) {
        var record = new ProducerRecord<>(
            topic, Integer.valueOf(fields[0]), Long.valueOf(fields[2]), decode(fields[3]), decode(fields[4]));
        for (int i = 5; i < fields.length; i += 2) {
            record.headers().add(new String(decode(fields[i]), StandardCharsets.UTF_8), decode(fields[i + 1]));
        }
        return record;
    }

    private static String line(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder line = new StringBuilder();
        line.append(record.partition()).append('\t').append(record.offset()).append('\t').append(record.timestamp());
        line.append('\t').append(encode(record.key())).append('\t').append(encode(record.value()));
        for (Header header : record.headers()) {
            line.append('\t').append(encode(header.key().getBytes(StandardCharsets.UTF_8))).append('\t').append(encode(header.value()));
        }
        return line.toString();
    }

    private static String encode(byte[] bytes) {
        return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] decode(String field) {
        return field.equals("-") ? null : Base64.getDecoder().decode(field);
    }
}
