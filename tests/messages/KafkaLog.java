import java.io.BufferedWriter;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.ScheduledFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.requests.ProduceResponse;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.ByteUtils;
import org.apache.kafka.common.utils.internals.Crc32C;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * KafkaLog FILE: every error code of Kafka, and what Kafka's own log says to good and bad batches of a producer.
 *
 * Lines: `error NAME CODE RETRIABLE`, and `batch VERSION CONFIGS RECORDS CODE OFFSET MESSAGE RECORD-ERRORS STORED`, bytes and
 * texts in hex, `-` for none. The time is always NOW.
 */
public class KafkaLog {
    static final long NOW = 1_800_000_000_000L;
    static final long T = NOW - 1000;
    static final HexFormat HEX = HexFormat.of();

    /** What the topics of the logs have set. */
    static final List<String> CONFIGS = List.of(
        "", "message.timestamp.type=LogAppendTime", "cleanup.policy=compact", "cleanup.policy=compact;message.timestamp.before.max.ms=500",
        "message.timestamp.before.max.ms=2000;message.timestamp.after.max.ms=0", "max.message.bytes=150",
        "compression.type=uncompressed", "compression.type=gzip;compression.gzip.level=9", "compression.type=snappy", "compression.type=lz4;compression.lz4.level=12",
        "compression.type=zstd;compression.zstd.level=-5;message.timestamp.type=LogAppendTime", "compression.type=uncompressed;max.message.bytes=200",
        "compression.type=lz4;message.timestamp.type=LogAppendTime;cleanup.policy=compact,delete");

    record Entry(long timestampDelta, int offsetDelta, byte[] key, byte[] value, byte[][] headers) { }

    /** A batch as a producer makes it, but for what a case changes. */
    static class Batch {
        long baseOffset = 0;
        int leaderEpoch = -1;
        byte magic = 2;
        int attributes;
        Integer lastOffsetDelta;
        long baseTimestamp = T;
        Long maxTimestamp;
        long producerId = -1;
        short producerEpoch = -1;
        int sequence = -1;
        Integer count;
        int crcError;
        List<Entry> records = new ArrayList<>();
        /** Changes the records before and after they are compressed. */
        UnaryOperator<byte[]> mangle = bytes -> bytes, packed = bytes -> bytes;

        byte[] encode(CompressionType codec) throws Exception {
            var payload = new ByteArrayOutputStream();
            for (Entry record : records) payload.write(KafkaLog.encode(record));
            byte[] bytes = packed.apply(compress(codec, mangle.apply(payload.toByteArray())));
            long latest = records.stream().mapToLong(record -> baseTimestamp + record.timestampDelta).max().orElse(baseTimestamp);
            ByteBuffer buffer = ByteBuffer.allocate(61 + bytes.length);
            buffer.putLong(baseOffset).putInt(49 + bytes.length).putInt(leaderEpoch).put(magic).putInt(0);
            buffer.putShort((short) (attributes | codec.id)).putInt(lastOffsetDelta == null ? records.size() - 1 : lastOffsetDelta);
            buffer.putLong(baseTimestamp).putLong(maxTimestamp == null ? latest : maxTimestamp);
            buffer.putLong(producerId).putShort(producerEpoch).putInt(sequence).putInt(count == null ? records.size() : count).put(bytes);
            buffer.putInt(17, (int) Crc32C.compute(buffer.array(), 21, buffer.capacity() - 21) ^ crcError);
            return buffer.array();
        }
    }

    static byte[] compress(CompressionType codec, byte[] bytes) throws Exception {
        if (codec == CompressionType.NONE) return bytes;
        var out = new ByteBufferOutputStream(1024);
        try (OutputStream stream = Compression.of(codec).build().wrapForOutput(out, (byte) 2)) {
            stream.write(bytes);
        }
        ByteBuffer buffer = out.buffer().flip();
        byte[] packed = new byte[buffer.remaining()];
        buffer.get(packed);
        return packed;
    }

    static byte[] encode(Entry record) {
        ByteBuffer body = ByteBuffer.allocate(100_000);
        body.put((byte) 0);
        ByteUtils.writeVarlong(record.timestampDelta, body);
        ByteUtils.writeVarint(record.offsetDelta, body);
        put(body, record.key);
        put(body, record.value);
        ByteUtils.writeVarint(record.headers.length / 2, body);
        for (byte[] field : record.headers) put(body, field);
        body.flip();
        ByteBuffer whole = ByteBuffer.allocate(body.remaining() + 5);
        ByteUtils.writeVarint(body.remaining(), whole);
        whole.put(body).flip();
        byte[] bytes = new byte[whole.remaining()];
        whole.get(bytes);
        return bytes;
    }

    static void put(ByteBuffer to, byte[] field) {
        ByteUtils.writeVarint(field == null ? -1 : field.length, to);
        if (field != null) to.put(field);
    }

    static byte[] utf8(String text) { return text == null ? null : text.getBytes(StandardCharsets.UTF_8); }

    /** Three records: the second has headers, the third is a tombstone. */
    static Batch three(String key) {
        var batch = new Batch();
        batch.records.add(new Entry(0, 0, utf8("k0"), utf8("a value that is long enough to be worth a codec, codec, codec"), new byte[0][]));
        batch.records.add(new Entry(5, 1, utf8(key), utf8("v1"), new byte[][] {utf8("h"), utf8("1"), utf8("h"), null}));
        batch.records.add(new Entry(3, 2, utf8("k2"), null, new byte[0][]));
        return batch;
    }

    static Batch with(Consumer<Batch> change) {
        Batch batch = three("k1");
        change.accept(batch);
        return batch;
    }

    static Batch at(long base, long... deltas) {
        var batch = new Batch();
        batch.baseTimestamp = base;
        for (int i = 0; i < deltas.length; i++) batch.records.add(new Entry(deltas[i], i, utf8("k"), utf8("v"), new byte[0][]));
        return batch;
    }

    static Batch deltas(int... deltas) {
        var batch = new Batch();
        for (int delta : deltas) batch.records.add(new Entry(delta, delta, utf8("k" + delta), utf8("v"), new byte[0][]));
        batch.lastOffsetDelta = deltas.length - 1;
        return batch;
    }

    static byte[] concat(byte[] a, byte[] b) { return ByteBuffer.allocate(a.length + b.length).put(a).put(b).array(); }
    static byte[] cut(byte[] bytes, int by) { return Arrays.copyOf(bytes, Math.max(0, bytes.length - by)); }

    static long producers = 1;

    static List<Batch> batches(Random random) {
        var batches = new ArrayList<Batch>();
        batches.add(three("k1"));
        batches.add(three(null));
        batches.add(with(b -> b.records.replaceAll(r -> new Entry(r.timestampDelta, r.offsetDelta, null, r.value, r.headers))));
        batches.add(at(T, 0, 0, 0, 0, 0, 0, 0));
        for (long delta : new long[] {-1, 0, 1}) {
            batches.add(at(NOW + 3_600_000 + delta, 0, -5));
            batches.add(at(NOW - 500 + delta, 0, 7));
            batches.add(at(NOW - 2000 + delta, 3, 0));
            batches.add(at(NOW + delta, 0));
        }
        batches.add(at(-1, 0));
        batches.add(at(-1, 0, T + 1));
        batches.add(at(0, 0, T, 4 * NOW));
        for (int attribute : new int[] {1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 3 | 1 << 6}) {
            batches.add(with(b -> b.attributes = attribute));
            batches.add(with(b -> {
                b.attributes = attribute;
                b.maxTimestamp = -1L;
                b.producerId = 1000 + producers++;
                b.producerEpoch = 0;
                b.sequence = 0;
            }));
        }
        batches.add(with(b -> { b.attributes = 1 << 3; b.maxTimestamp = NOW + 5_000_000; }));
        for (long max : new long[] {0, -1, T - 5, T + 3, T + 5, T + 6, Long.MAX_VALUE}) batches.add(with(b -> b.maxTimestamp = max));
        for (long base : new long[] {1, -1, Long.MAX_VALUE}) batches.add(with(b -> b.baseOffset = base));
        for (int codec = 5; codec < 8; codec++) {
            int attribute = codec;
            batches.add(with(b -> b.attributes = attribute));
        }
        batches.add(with(b -> b.crcError = 1));
        batches.add(with(b -> b.leaderEpoch = 99));
        for (int last : new int[] {-2, -1, 0, 1, 3, Integer.MAX_VALUE}) {
            batches.add(with(b -> b.lastOffsetDelta = last));
            batches.add(with(b -> { b.lastOffsetDelta = last; b.count = last + 1; }));
        }
        for (int count : new int[] {-1, 0, 2, 4}) batches.add(with(b -> b.count = count));
        batches.add(new Batch());
        for (int sequence : new int[] {-1, -2, 0, 7, Integer.MAX_VALUE}) {
            batches.add(with(b -> { b.producerId = 1000 + producers++; b.producerEpoch = 0; b.sequence = sequence; }));
        }
        batches.add(with(b -> b.producerId = -7));
        batches.add(deltas(0, 2, 4));
        batches.add(deltas(0, 0, 1));
        batches.add(deltas(2, 1, 0));
        batches.add(deltas(-1, 0, 1));
        batches.add(with(b -> b.mangle = bytes -> concat(bytes, new byte[] {0})));
        batches.add(with(b -> b.mangle = bytes -> concat(bytes, encode(new Entry(0, 3, null, null, new byte[0][])))));
        for (int by = 1; by < 12; by++) {
            int less = by;
            batches.add(with(b -> b.mangle = bytes -> cut(bytes, less)));
            batches.add(with(b -> b.packed = bytes -> cut(bytes, less)));
        }
        batches.add(with(b -> b.mangle = bytes -> new byte[0]));
        batches.add(with(b -> b.packed = bytes -> concat(bytes, new byte[] {1, 2, 3})));
        batches.add(with(b -> {
            for (int i = 3; i < 600; i++) b.records.add(new Entry(i, i, i % 7 == 0 ? null : utf8("k"), utf8("value " + i), new byte[0][]));
        }));
        for (int i = 0; i < 60; i++) {
            int changes = 1 + random.nextInt(3);
            UnaryOperator<byte[]> change = bytes -> {
                for (int n = 0; n < changes && bytes.length > 0; n++) bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(i(random));
                return bytes;
            };
            batches.add(with(b -> { if (random.nextInt(3) > 0) b.mangle = change; else b.packed = change; }));
        }
        return batches;
    }

    static int i(Random random) { return random.nextBoolean() ? 256 : 16; }

    /** What comes instead of one batch. */
    static List<byte[]> frames() throws Exception {
        byte[] good = three("k1").encode(CompressionType.NONE);
        var frames = new ArrayList<byte[]>(List.of(
            new byte[0], new byte[16], new byte[61], cut(good, 1), cut(good, good.length - 5), cut(good, good.length - 16), cut(good, good.length - 17),
            concat(good, good), concat(good, new byte[11]), concat(good, new byte[20]), concat(good, cut(good, 1)), concat(good, cut(good, good.length - 16))));
        for (int[] change : new int[][] {{11, 13}, {8, 0xff}, {16, 0}, {16, 1}, {16, 3}, {16, 0xff}, {16, 0x80}}) {
            byte[] bytes = good.clone();
            bytes[change[0]] = (byte) change[1];
            if (change[0] == 11) bytes[10] = 0;
            frames.add(bytes);
        }
        return frames;
    }

    static final Time TIME = new Time() {
        public long milliseconds() { return NOW; }
        public long nanoseconds() { return 0; }
        public void sleep(long ms) { }
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) { }
    };

    static final Scheduler SCHEDULER = new Scheduler() {
        public void startup() { }
        public void shutdown() { }
        public ScheduledFuture<?> schedule(String name, Runnable task, long delay, long period) { return null; }
        public void resizeThreadPool(int size) { }
    };

    static UnifiedLog log(Path folder, String configs) throws Exception {
        Map<String, Object> set = new LinkedHashMap<>();
        for (String config : configs.split(";")) if (!config.isEmpty()) set.put(config.split("=")[0], config.split("=")[1]);
        File dir = Files.createDirectories(folder.resolve("clicks-3")).toFile();
        return UnifiedLog.create(dir, new LogConfig(set), 0, 0, SCHEDULER, new BrokerTopicStats(), TIME, 60_000,
            new ProducerStateManagerConfig(60_000, false), 60_000, new LogDirFailureChannel(1), true, Optional.empty());
    }

    static String hex(String text) { return text == null || text.isEmpty() ? "-" : HEX.formatHex(utf8(text)); }
    static String hex(byte[] bytes) { return bytes.length == 0 ? "-" : HEX.formatHex(bytes); }

    /** Appends as `KafkaApis` and `ReplicaManager` do, and tells what a client is answered. */
    static String outcome(UnifiedLog log, short version, byte[] bytes) throws Exception {
        long offset = log.logEndOffset();
        try {
            // The log changes what it is given.
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes.clone()));
            ProduceRequest.validateRecords(version, records);
            LogAppendInfo info = log.appendAsLeader(records, 7);
            FileRecords file = (FileRecords) log.read(offset, Integer.MAX_VALUE, FetchIsolation.LOG_END, true).records;
            ByteBuffer stored = ByteBuffer.allocate(file.sizeInBytes());
            file.readInto(stored, 0);
            return "0 " + info.firstOffset() + " - - " + HEX.formatHex(stored.array(), 0, stored.limit());
        } catch (RecordValidationException refused) {
            String errors = refused.recordErrors().stream().map(error -> error.batchIndex + ":" + hex(error.message)).collect(Collectors.joining(";"));
            Throwable invalid = refused.invalidException();
            return Errors.forException(invalid).code() + " -1 " + hex(invalid.getMessage()) + " " + errors + " -";
        } catch (Throwable refused) {
            Errors error = Errors.forException(refused);
            return error.code() + " -1 " + hex(refused.getMessage()) + " - -";
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("kafka-log");
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[0]))) {
            for (Errors error : Errors.values()) {
                out.write("error " + error.name() + " " + error.code() + " " + (error.exception() instanceof RetriableException) + "\n");
            }
            var random = new Random(7);
            for (int i = 0; i < CONFIGS.size(); i++) {
                String configs = CONFIGS.get(i);
                UnifiedLog log = log(folder.resolve("" + i), configs);
                for (CompressionType codec : CompressionType.values()) {
                    for (Batch batch : batches(random)) write(out, log, (short) 13, configs, batch.encode(codec));
                }
                for (byte[] frame : frames()) write(out, log, (short) 9, configs, frame);
                for (short version : new short[] {3, 6, 7}) write(out, log, version, configs, three("k1").encode(CompressionType.ZSTD));
            }
        } finally {
            try (var files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
        System.exit(0);
    }

    static void write(BufferedWriter out, UnifiedLog log, short version, String configs, byte[] bytes) throws Exception {
        String outcome = outcome(log, version, bytes);
        out.write("batch " + version + " " + (configs.isEmpty() ? "-" : configs) + " " + hex(bytes) + " " + outcome + "\n");
    }
}
