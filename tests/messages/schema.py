#!/usr/bin/env python3
"""schema.py SOURCE JAR...: compares every row of Kelp's tables (SOURCE/messages) and every version of its lists
(SOURCE/protocol/api_key.rs and SOURCE/messages/records/mod.rs) with the schemas that Apache Kafka carries in its jars: name,
order, type, versions, tag, nullability and default of each field."""

import json
import re
import sys
import zipfile
from pathlib import Path

# The fields that Kafka 4.0 took out of its schemas with the versions that had them.
LOST = {
    ("list_offsets", "max_num_offsets"),
    ("list_offsets", "old_style_offsets"),
    ("offset_commit", "commit_timestamp"),
    ("describe_configs", "is_default"),
    ("alter_partition", "topic_name"),
}
# The newest version of Kafka's schema that no release of Kafka offers, because it is not stable yet.
UNSTABLE = {"InitProducerId": 6}

TYPES = {
    "bool": "bool", "int8": "i8", "int16": "i16", "uint16": "u16", "int32": "i32", "uint32": "u32", "int64": "i64",
    "float64": "f64", "string": "Str", "bytes": "Bytes", "records": "Records", "uuid": "Uuid",
}  # fmt: skip
NUMBERS = {"i32::MAX": 2**31 - 1, "i32::MIN": -(2**31), "i64::MAX": 2**63 - 1}
FOREVER = 32767

ROW = re.compile(r"^        (?:r#)?(\w+): (\S+) +\[([^\]]+)\](?: = (.+))?,$")
API = re.compile(r"^ +(\d+) +=> (\w+) +(\d+)\.\.=(\d+), +(\S+?)\.\., +(\w+);$")
RECORD = re.compile(r"^ +(\w+) +=> (\d+)\.\.=(\d+), +(\S+?)\.\., +(\w+)::(\w+);$")

problems = []


def problem(*what):
    problems.append(" ".join(str(word) for word in what))


def rust_range(text):
    first, _, last = text.partition("..")
    return range(int(first), (int(last[1:]) if last else FOREVER) + 1)


def kafka_range(text):
    if text in ("none", None):
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), FOREVER + 1)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def field_versions(field):
    return kafka_range(field.get("versions") or field["taggedVersions"])


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def tables(path):
    """The structs of one file: name -> rows, each (name, type, versions, tag, null versions, default)."""
    structs, rows, inside = {}, None, False
    for line in path.read_text().splitlines():
        inside = inside or line == "message! {"
        struct = re.match(r"^    (\w+) \{$", line)
        if not inside or not line.strip() or line.strip().startswith("//"):
            continue
        if struct:
            rows = structs[struct[1]] = []
        elif line.startswith("        "):
            row = ROW.match(line)
            if not row:
                sys.exit(f"{path}: not a row: {line}")
            versions, tag, null = row[3].split(", ")[0], None, None
            for word in row[3].split(", ")[1:]:
                key, value = word.split(" ")
                if key == "tag":
                    tag = int(value)
                else:
                    null = rust_range(value)
            rows.append((row[1], row[2], rust_range(versions), tag, null, row[4]))
    return structs


def rust_default(kind, text):
    if text is None:
        return None if kind.startswith("Option<") else "empty"
    if text.startswith("Some("):
        return "empty"
    if text in NUMBERS:
        return NUMBERS[text]
    return {"true": True, "false": "empty", "None": None}.get(text) if text in ("true", "false", "None") else int(text)


def kafka_default(field, may_be_null):
    # A null that is no text is no default at all for Kafka's generator.
    value = field.get("default") or ""
    # Kafka's generator begins records with null whatever the schema says.
    if value == "null" or field["type"] == "records" and may_be_null:
        return None
    if field["type"] == "bool":
        return True if value in (True, "true") else "empty"
    if field["type"] in TYPES and "int" in field["type"]:
        return int(str(value), 0) if value != "" and int(str(value), 0) != 0 else "empty"
    return "empty" if value in ("", False) else value


class Message:
    """One message of Kafka, and the structs of Kelp that should be equal to it. Where request and response each have a
    struct of one name, that of the response has `Response` before it in Kelp's table."""

    def __init__(self, module, schema, structs):
        self.module, self.structs = module, structs
        self.is_response = schema["type"] == "response"
        self.common = {struct["name"]: struct["fields"] for struct in schema.get("commonStructs", [])}
        self.used = set()
        self.seen = set()
        self.rows = 0

    def struct_name(self, name):
        own = "Response" + name
        return own if self.is_response and own in self.structs else name

    def compare(self, name, fields, versions):
        """One struct in the versions that the field has which holds it."""
        name = self.struct_name(name)
        if (name, *versions) in self.seen:
            return
        self.seen.add((name, *versions))
        rows = self.structs.get(name)
        if rows is None:
            return problem(self.module, "has no struct", name)
        fields = {snake(field["name"]): field for field in fields}
        fields = {name: f for name, f in fields.items() if any(v in field_versions(f) for v in versions)}
        rows = [row for row in rows if (self.module, row[0]) not in LOST or any(v in row[2] for v in versions)]
        # The plain ones stand in wire order. Tags go out in the order of their numbers, and Kelp writes them as they stand.
        wanted = [name for name, f in fields.items() if "tag" not in f]
        wanted += [name for name, f in sorted(fields.items(), key=lambda f: f[1].get("tag", 0)) if "tag" in f]
        ours = [row[0] for row in rows if row[3] is None] + [row[0] for row in rows if row[3] is not None]
        if ours != wanted:
            return problem(self.module, name, "has the fields", ours, "Kafka's has", wanted)
        self.rows += len(rows) if name not in self.used else 0
        self.used.add(name)
        for row in rows:
            self.field(name, row, fields[row[0]], versions)

    def rust_type(self, field, versions):
        kind = field["type"]
        array = kind.startswith("[]")
        kind = kind.removeprefix("[]")
        kind = "ErrorCode" if kind == "int16" and field["name"].endswith("ErrorCode") else TYPES.get(kind) or self.struct_name(kind)
        kind = f"Vec<{kind}>" if array else kind
        null = kafka_range(field.get("nullableVersions", "none"))
        return f"Option<{kind}>" if any(v in null for v in versions) else kind

    def field(self, struct, row, field, all_versions):
        name, kind, versions, tag, null, default = row
        where = (self.module, f"{struct}.{name}:")
        present = field_versions(field)
        tagged = kafka_range(field.get("taggedVersions", "none"))
        nullable = kafka_range(field.get("nullableVersions", "none"))
        here = [v for v in all_versions if v in present]
        wanted = self.rust_type(field, here)
        # Records that are read are one slice of the frame; those that are sent may be many.
        if kind != wanted and kind.replace("Bytes", "Records") != wanted:
            problem(*where, "type", kind, "Kafka's", wanted)
        kafkas = kafka_default(field, wanted.startswith("Option<"))
        if rust_default(kind, default) != kafkas:
            problem(*where, "default", rust_default(kind, default), "Kafka's", kafkas)
        for v in all_versions:
            if (v in versions) != (v in present):
                problem(*where, "version", v, "is there" if v in versions else "is missing")
            elif v in present:
                if tag != (field["tag"] if v in tagged else None):
                    problem(*where, "tag", tag, "in version", v)
                may = kind.startswith("Option<") and (null is None or v in null)
                if may != (v in nullable):
                    problem(*where, "may be null" if may else "may not be null", "in version", v)
        inner = field["type"].removeprefix("[]")
        if inner not in TYPES:
            self.compare(inner, field.get("fields") or self.common[inner], here)


def schemas(jar):
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", files.read(name).decode(), flags=re.M)
                yield json.loads(re.sub(r"\s//[^\"]*$", "", text, flags=re.M))


def matches(pattern, path):
    return [match.groups() for match in map(pattern.match, path.read_text().splitlines()) if match]


def compare_flexible(name, flexible, schema):
    first = (kafka_range(schema["flexibleVersions"]) or [FOREVER])[0]
    if first != (FOREVER if flexible == "i16::MAX" else int(flexible)):
        problem(name, "is flexible from", flexible, "Kafka's", schema["flexibleVersions"])


def compare_unused(module, structs, used):
    for extra in structs.keys() - used:
        problem(module, "has a struct that Kafka has not:", extra)


def compare_apis(source, kafka):
    kafka = {(s["apiKey"], s["type"]): s for s in kafka.values() if s["type"] in ("request", "response")}
    apis = matches(API, source / "protocol/api_key.rs")
    rows = versions = 0
    for key, name, first, last, flexible, module in apis:
        structs = tables(source / f"messages/{module}.rs")
        used = set()
        for kind in ("request", "response"):
            schema = kafka.pop((int(key), kind))
            valid = kafka_range(schema["validVersions"])
            newest = valid[-1] - 1 if UNSTABLE.get(name) == valid[-1] else valid[-1]
            if schema["name"] != name + kind.capitalize():
                problem(key, "is", name, "Kafka's", schema["name"])
            if newest != int(last) or int(first) > valid[0]:
                problem(name, "versions", first, "to", last, "Kafka's", schema["validVersions"])
            compare_flexible(name, flexible, schema)
            message = Message(module, schema, structs)
            message.compare(kind.capitalize(), schema["fields"], list(valid))
            rows += message.rows
            versions += newest - valid[0] + 1
            used |= message.used
        compare_unused(module, structs, used)
    for schema in kafka.values():
        if schema["validVersions"] != "none":
            problem("no table for", schema["name"])
    print(f"schema: {rows} rows of {len(apis)} APIs are compared with Kafka's, in {versions} API x version x direction")


def compare_records(source, kafka):
    records = matches(RECORD, source / "messages/records/mod.rs")
    rows, used = 0, {}
    for name, first, last, flexible, module, struct in records:
        path = source / f"messages/records/{module}.rs"
        structs = tables(path)
        schema = kafka[name]
        valid = kafka_range(schema["validVersions"])
        if valid != range(int(first), int(last) + 1):
            problem(name, "versions", first, "to", last, "Kafka's", schema["validVersions"])
        if struct == "Key" and "apiKey" in schema and f"pub const TYPE: i16 = {schema['apiKey']};" not in path.read_text():
            problem(name, "is not of Kafka's type", schema["apiKey"])
        compare_flexible(name, flexible, schema)
        message = Message(module, schema, structs)
        message.compare(struct, schema["fields"], list(valid))
        rows += message.rows
        used.setdefault(module, (structs, set()))[1].update(message.used)
    for module, (structs, names) in used.items():
        compare_unused(module, structs, names)
    print(f"schema: {rows} rows of {len(records)} records are compared with Kafka's")


def main(source, *jars):
    kafka = {schema["name"]: schema for jar in jars for schema in schemas(jar)}
    compare_apis(source, kafka)
    compare_records(source, kafka)
    for line in problems:
        print("  " + line)
    sys.exit(bool(problems))


main(Path(sys.argv[1]), *sys.argv[2:])
