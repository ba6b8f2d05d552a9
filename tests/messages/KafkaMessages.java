import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * KafkaMessages FILE: has Kafka's own classes write every API in every version and both directions, and every record that Kelp
 * has a table for in every version: several messages of each. A line is: key or record's name, version, direction or `record`, kind, bytes in hex, and for kind `tags` the same message without its unknown tags.
 *
 * The schemas in the jar say which fields a version has; values follow from the place of a field, so no two are alike.
 */
public class KafkaMessages {
    enum Kind { DEFAULTS, FULL, NULL, EMPTY, MINIMUM, MAXIMUM, MANY, TAGS }

    static final ObjectMapper JSON = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    static final String GROUP = "org.apache.kafka.coordinator.group.generated.";
    static final String TRANSACTION = "org.apache.kafka.coordinator.transaction.generated.";
    static final String COMMON = "org.apache.kafka.common.message.";
    static final String[] RECORDS = {
        GROUP + "LegacyOffsetCommitKey", GROUP + "LegacyOffsetCommitValue",
        GROUP + "OffsetCommitKey", GROUP + "OffsetCommitValue",
        GROUP + "GroupMetadataKey", GROUP + "GroupMetadataValue",
        GROUP + "ConsumerGroupMetadataKey", GROUP + "ConsumerGroupMetadataValue",
        GROUP + "ConsumerGroupPartitionMetadataKey", GROUP + "ConsumerGroupPartitionMetadataValue",
        GROUP + "ConsumerGroupMemberMetadataKey", GROUP + "ConsumerGroupMemberMetadataValue",
        GROUP + "ConsumerGroupTargetAssignmentMetadataKey", GROUP + "ConsumerGroupTargetAssignmentMetadataValue",
        GROUP + "ConsumerGroupTargetAssignmentMemberKey", GROUP + "ConsumerGroupTargetAssignmentMemberValue",
        GROUP + "ConsumerGroupCurrentMemberAssignmentKey", GROUP + "ConsumerGroupCurrentMemberAssignmentValue",
        GROUP + "ConsumerGroupRegularExpressionKey", GROUP + "ConsumerGroupRegularExpressionValue",
        TRANSACTION + "TransactionLogKey", TRANSACTION + "TransactionLogValue",
        COMMON + "ConsumerProtocolSubscription", COMMON + "ConsumerProtocolAssignment",
        COMMON + "ControlRecordTypeSchema", COMMON + "EndTxnMarker",
    };
    static final int LONGEST_STRING = Short.MAX_VALUE;

    /** What stays the same while one message is made. */
    final Kind kind;
    final short version;
    final Map<String, JsonNode> commonStructs = new HashMap<>();
    boolean hadLongString;

    KafkaMessages(Kind kind, short version) {
        this.kind = kind;
        this.version = version;
    }

    public static void main(String[] args) throws Exception {
        int count = 0;
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[0]))) {
            for (ApiMessageType api : ApiMessageType.values()) {
                for (short version = api.lowestSupportedVersion(); version <= api.highestSupportedVersion(true); version++) {
                    writeAll(out, "" + api.apiKey(), version, "request", api.newRequest().getClass());
                    writeAll(out, "" + api.apiKey(), version, "response", api.newResponse().getClass());
                    count += 2;
                }
            }
            System.out.println("Kafka's classes wrote " + writeRecords(out) + " record x version");
        }
        System.out.println("Kafka's classes wrote " + count + " API x version x direction");
    }

    static int writeRecords(BufferedWriter out) throws Exception {
        int count = 0;
        for (String name : RECORDS) {
            Class<?> type = Class.forName(name);
            ApiMessage first = (ApiMessage) type.getConstructor().newInstance();
            for (short version = first.lowestSupportedVersion(); version <= first.highestSupportedVersion(); version++) {
                writeAll(out, type.getSimpleName(), version, "record", type);
                count++;
            }
        }
        return count;
    }

    static void writeAll(BufferedWriter out, String key, short version, String direction, Class<?> type) throws Exception {
        // The class of a schema may have `Data` at its end.
        String name = type.getSimpleName().replaceFirst("(Request|Response)Data$", "$1");
        JsonNode schema;
        try (InputStream in = type.getResourceAsStream("/common/message/" + name + ".json")) {
            schema = JSON.readTree(in);
        }
        boolean isFlexible = contains(schema.get("flexibleVersions").asText(), version);
        for (Kind kind : Kind.values()) {
            if (kind == Kind.TAGS && !isFlexible) continue;
            KafkaMessages maker = new KafkaMessages(kind, version);
            schema.path("commonStructs").forEach(s -> maker.commonStructs.put(s.get("name").asText(), s.get("fields")));
            ApiMessage message;
            if (kind == Kind.DEFAULTS) {
                message = (ApiMessage) type.getConstructor().newInstance();
            } else {
                JsonNode json = maker.struct(schema.get("fields"), name);
                Class<?> converter = Class.forName(type.getName() + "JsonConverter");
                message = (ApiMessage) converter.getMethod("read", JsonNode.class, short.class).invoke(null, json, version);
            }
            String bytes = encode(message, version);
            if (kind == Kind.TAGS) {
                maker.addUnknownTags(message, schema.get("fields"));
                bytes = encode(message, version) + " " + bytes;
            }
            out.write(key + " " + version + " " + direction + " " + kind.name().toLowerCase() + " " + bytes + "\n");
        }
    }

    static String encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array());
    }

    /** Puts two tags that no version knows into every struct of a message. */
    void addUnknownTags(Message message, JsonNode fields) throws Exception {
        message.unknownTaggedFields().add(new RawTaggedField(1000, new byte[] {1, 2, 3}));
        message.unknownTaggedFields().add(new RawTaggedField(Integer.MAX_VALUE - 1, new byte[0]));
        for (JsonNode field : fields) {
            // A struct that this version does not have must stay as it is.
            if (!contains(versions(field), version)) continue;
            Field member = message.getClass().getDeclaredField(key(field));
            member.setAccessible(true);
            Object value = member.get(message);
            Collection<?> items = value instanceof Collection<?> many ? many : Collections.singleton(value);
            for (Object item : items) {
                if (item instanceof Message inner) addUnknownTags(inner, fieldsOf(field));
            }
        }
    }

    /** Where the versions of a tagged field are its tag's, they may stand there only. */
    static String versions(JsonNode field) {
        return (field.has("versions") ? field.get("versions") : field.get("taggedVersions")).asText();
    }

    static String key(JsonNode field) {
        String name = field.get("name").asText();
        return Character.toLowerCase(name.charAt(0)) + name.substring(1);
    }

    /** The fields of a field's struct. */
    JsonNode fieldsOf(JsonNode field) {
        String type = field.get("type").asText();
        return field.has("fields") ? field.get("fields") : commonStructs.get(type.startsWith("[]") ? type.substring(2) : type);
    }

    static boolean contains(String versions, short version) {
        if (versions.equals("none")) return false;
        if (versions.endsWith("+")) return version >= Short.parseShort(versions.substring(0, versions.length() - 1));
        String[] ends = versions.split("-");
        return version >= Short.parseShort(ends[0]) && version <= Short.parseShort(ends[ends.length - 1]);
    }

    ObjectNode struct(JsonNode fields, String place) {
        ObjectNode struct = NODES.objectNode();
        for (JsonNode field : fields) {
            if (!contains(versions(field), version)) continue;
            struct.set(key(field), value(field, place + "." + key(field)));
        }
        return struct;
    }

    JsonNode value(JsonNode field, String place) {
        boolean mayBeNull = contains(field.path("nullableVersions").asText("none"), version);
        if (mayBeNull && kind == Kind.NULL) return NODES.nullNode();
        String type = field.get("type").asText();
        if (!type.startsWith("[]")) return single(field, type, place);
        ArrayNode array = NODES.arrayNode();
        boolean isOuter = place.indexOf('[') < 0;
        int count = switch (kind) {
            case EMPTY -> 0;
            case NULL, MINIMUM, MAXIMUM -> 1;
            case MANY -> isOuter ? 300 : 2;
            default -> 2;
        };
        for (int i = 0; i < count; i++) array.add(single(field, type.substring(2), place + "[" + i + "]"));
        return array;
    }

    JsonNode single(JsonNode field, String type, String place) {
        return switch (type) {
            case "bool" -> NODES.booleanNode(kind != Kind.EMPTY && kind != Kind.MINIMUM);
            case "int8" -> NODES.numberNode(integer(Byte.MIN_VALUE, Byte.MAX_VALUE, place));
            case "int16" -> NODES.numberNode(field.get("name").asText().endsWith("ErrorCode")
                ? integer(-1, Errors.values().length - 2, place)
                : integer(Short.MIN_VALUE, Short.MAX_VALUE, place));
            case "uint16" -> NODES.numberNode(integer(0, 0xffff, place));
            case "int32" -> NODES.numberNode(integer(Integer.MIN_VALUE, Integer.MAX_VALUE, place));
            case "uint32" -> NODES.numberNode(integer(0, 0xffffffffL, place));
            case "int64" -> NODES.numberNode(integer(Long.MIN_VALUE, Long.MAX_VALUE, place));
            case "float64" -> NODES.numberNode(switch (kind) {
                case EMPTY -> 0.0;
                case MINIMUM -> -Double.MAX_VALUE;
                case MAXIMUM -> Double.MAX_VALUE;
                default -> random(place).nextGaussian();
            });
            case "string" -> NODES.textNode(string(place));
            case "bytes" -> NODES.binaryNode(bytes(place, 3000));
            case "records" -> NODES.binaryNode(bytes(place, 70_000));
            case "uuid" -> NODES.textNode(uuid(place).toString());
            default -> struct(fieldsOf(field), place);
        };
    }

    /** The place itself is the seed: equal in every run. */
    static Random random(String place) {
        return new Random(place.hashCode());
    }

    long integer(long least, long greatest, String place) {
        return switch (kind) {
            case EMPTY -> 0;
            case MINIMUM -> least;
            case MAXIMUM -> greatest;
            default -> random(place).longs(1, least, greatest).findFirst().getAsLong();
        };
    }

    String string(String place) {
        if (kind == Kind.EMPTY || kind == Kind.MINIMUM) return "";
        if (kind != Kind.MAXIMUM) return "é" + place;
        if (hadLongString) return "ß→🦀".repeat(20);
        hadLongString = true;
        return "k".repeat(LONGEST_STRING);
    }

    byte[] bytes(String place, int longest) {
        int count = switch (kind) {
            case EMPTY, MINIMUM -> 0;
            case MAXIMUM -> longest;
            // Kelp sends those of 1 KiB and more without copying them.
            case FULL, TAGS -> 1200;
            default -> 9;
        };
        byte[] bytes = new byte[count];
        random(place).nextBytes(bytes);
        return bytes;
    }

    Uuid uuid(String place) {
        Random random = random(place);
        return switch (kind) {
            case EMPTY, MINIMUM -> Uuid.ZERO_UUID;
            case MAXIMUM -> new Uuid(-1, -1);
            default -> new Uuid(random.nextLong(), random.nextLong());
        };
    }
}
