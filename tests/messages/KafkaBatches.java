import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

/**
 * KafkaBatches write FILE: has Kafka's own classes make batches of every kind in every codec.
 * KafkaBatches read FILE: has them read batches of another, each with the description that they must come to.
 *
 * A line is: bytes in hex, and the fields of the batch and of its records as text.
 */
public class KafkaBatches {
    static final HexFormat HEX = HexFormat.of();
    static final long TIME = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[1]);
        if (args[0].equals("write")) {
            List<String> lines = new ArrayList<>();
            for (Compression compression : compressions()) {
                for (Kind kind : Kind.values()) {
                    ByteBuffer bytes = make(compression, kind);
                    lines.add(HEX.formatHex(bytes.array(), bytes.arrayOffset(), bytes.limit()) + " " + describe(bytes));
                }
            }
            Files.write(file, lines);
            System.out.println(lines.size() + " batches written by Kafka");
            return;
        }
        int read = 0;
        for (String line : Files.readAllLines(file)) {
            String[] words = line.split(" ");
            String description = describe(ByteBuffer.wrap(HEX.parseHex(words[0])));
            if (!description.equals(words[1])) {
                System.err.println("batch " + read + " is for Kafka\n" + cut(description) + "\ninstead of\n" + cut(words[1]));
                System.exit(1);
            }
            read++;
        }
        System.out.println(read + " batches read by Kafka");
        if (read == 0) System.exit(1);
    }

    static String cut(String text) {
        return text.substring(0, Math.min(text.length(), 500));
    }

    enum Kind { PLAIN, PRODUCER, APPEND_TIME, MARKER, HORIZON, HOLES, LONG, MANY }

    static List<Compression> compressions() {
        List<Compression> all = new ArrayList<>(List.of(Compression.NONE, Compression.snappy().build()));
        for (int level : new int[] {-1, 1, 9}) all.add(Compression.gzip().level(level).build());
        for (int level : new int[] {1, 9, 17}) all.add(Compression.lz4().level(level).build());
        for (int level : new int[] {-131072, 3, 19}) all.add(Compression.zstd().level(level).build());
        return all;
    }

    static ByteBuffer make(Compression compression, Kind kind) {
        boolean isMarker = kind == Kind.MARKER;
        boolean hasProducer = kind == Kind.PRODUCER || isMarker;
        TimestampType type = kind == Kind.APPEND_TIME ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        ByteBufferOutputStream out = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(out, RecordBatch.MAGIC_VALUE_V2, compression, type, 1000, TIME + 77,
            hasProducer ? 5 : -1, (short) (hasProducer ? 6 : -1), kind == Kind.PRODUCER ? 7 : -1, hasProducer, isMarker, 8,
            Integer.MAX_VALUE, kind == Kind.HORIZON ? TIME + 99 : RecordBatch.NO_TIMESTAMP);
        Random random = new Random(1);
        switch (kind) {
            case MARKER -> builder.appendEndTxnMarker(TIME, new EndTransactionMarker(ControlRecordType.COMMIT, 9));
            case LONG -> {
                byte[] text = "kelp and kafka ".repeat(75_000).getBytes(), noise = new byte[100_000];
                random.nextBytes(noise);
                builder.append(TIME, bytes("text"), ByteBuffer.wrap(text));
                builder.append(TIME + 1, bytes("noise"), ByteBuffer.wrap(noise));
            }
            case MANY -> {
                for (int i = 0; i < 1000; i++) {
                    builder.append(TIME + random.nextInt(10_000), ("key-" + random.nextInt(100)).getBytes(), new byte[random.nextInt(300)]);
                }
            }
            default -> {
                int step = kind == Kind.HOLES ? 200 : 1;
                Header[] headers = {new RecordHeader("trace", new byte[] {1, 2}), new RecordHeader("trace", null), new RecordHeader("", new byte[0])};
                builder.appendWithOffset(1000 + step - 1, TIME, bytes("key"), bytes("value"), headers);
                builder.appendWithOffset(1000 + 2 * step, TIME - 500, null, bytes(""), new Header[0]);
                builder.appendWithOffset(1000 + 3 * step, TIME + 70_000, bytes(""), null, new Header[0]);
                builder.appendWithOffset(1000 + 4 * step, -1, (ByteBuffer) null, null, new Header[0]);
                if (kind == Kind.HOLES) builder.overrideLastOffset(1000 + 5 * step);
            }
        }
        MemoryRecords records = builder.build();
        return records.buffer();
    }

    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes());
    }

    /** Of the one batch in some bytes, which must be valid. */
    static String describe(ByteBuffer bytes) {
        StringJoiner all = new StringJoiner(";");
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(bytes.duplicate()).batches()) {
            batch.ensureValid();
            all.add(batch.baseOffset() + "," + batch.lastOffset() + "," + batch.partitionLeaderEpoch() + "," + batch.compressionType().name
                + "," + batch.maxTimestamp() + "," + (batch.timestampType() == TimestampType.LOG_APPEND_TIME) + "," + batch.isTransactional()
                + "," + batch.isControlBatch() + "," + (batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : "-")
                + "," + batch.producerId() + "," + batch.producerEpoch() + "," + batch.baseSequence() + "," + batch.countOrNull());
            for (Record record : batch) {
                StringJoiner headers = new StringJoiner("|");
                for (Header header : record.headers()) {
                    headers.add(HEX.formatHex(header.key().getBytes()) + "=" + (header.value() == null ? "-" : HEX.formatHex(header.value())));
                }
                all.add(record.offset() + "," + record.timestamp() + "," + hex(record.key()) + "," + hex(record.value()) + "," + headers);
            }
        }
        return all.toString();
    }

    /** In hex, or length and checksum of what is long. */
    static String hex(ByteBuffer bytes) {
        if (bytes == null) return "-";
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        if (copy.length <= 100) return HEX.formatHex(copy);
        CRC32C checksum = new CRC32C();
        checksum.update(copy);
        return copy.length + "#" + checksum.getValue();
    }
}
