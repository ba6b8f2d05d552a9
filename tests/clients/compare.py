"""Compares records that were stored or read with those that were sent."""
import kwire
import records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")  # in the order of their numbers in a batch's attributes


def stored_batches(broker, topic, partitions):
    """The batches of each partition, by a raw fetch."""
    k, stored = kwire.K(broker), []
    for partition in range(partitions):
        end, batches = k.offset(topic, -1, partition)["off"], []
        while (batches[-1]["last"] + 1 if batches else 0) < end:
            answer = k.fetch(topic, batches[-1]["last"] + 1 if batches else 0, partition)
            kwire.want(answer["err"] == 0, f"raw fetch of partition {partition}: error {answer['err']}")
            more = kwire.read_batches(answer["records"])
            kwire.want(more, f"raw fetch of partition {partition}: nothing at {batches and batches[-1]['last'] + 1}, the end is {end}")
            batches += more
        stored.append(batches)
    k.c.close()
    return stored


def check_stored(stored, wanted, codec, now):
    """Codec bits and offsets of every batch; its records too where Python can decompress them."""
    for partition, batches in enumerate(stored):
        count = sum(record.partition == partition for record in wanted)
        kwire.want(len(batches) > 1, f"partition {partition}: {count} records came in one batch")
        kwire.want(len(batches) * 5 < count, f"partition {partition}: {count} records came in {len(batches)} batches")
        end = 0
        for batch in batches:
            kwire.want(batch["base"] == end, f"partition {partition}: a batch begins at {batch['base']}, the one before ends at {end}")
            kwire.want(batch["codec"] == CODECS.index(codec), f"partition {partition}: the batch at {end} is stored as {CODECS[batch['codec']]}, not {codec}")
            kwire.want(not batch["append"], f"partition {partition}: the batch at {end} has the broker's timestamps")
            end = batch["last"] + 1
        kwire.want(end == count, f"partition {partition} ends at {end}, not {count}")
    if codec in ("none", "gzip"):
        check_equal("stored", [record for partition, batches in enumerate(stored) for batch in batches for record in decoded(partition, batch)], wanted, now)


def decoded(partition, batch):
    for offset, timestamp, key, value, headers in batch["recs"]:
        yield records.Record(partition, offset, timestamp, key, value, tuple((name.decode(), value) for name, value in headers))


def check_equal(what, got, wanted, now, tells_null=True):
    """`now` is the first and last moment that a timestamp may have, for a client that gives none."""
    if now:
        for record in got:
            kwire.want(now[0] <= record.timestamp <= now[1], f"{what}: timestamp {record.timestamp} was given between {now[0]} and {now[1]}")
        got, wanted = ([record._replace(timestamp=0) for record in some] for some in (got, wanted))
    if not tells_null:
        got, wanted = (list(map(nulls_as_empty, some)) for some in (got, wanted))
    for has, wants in zip(got, wanted):
        if has != wants:
            different = [f"{field} {getattr(has, field)!r}, not {getattr(wants, field)!r}" for field in has._fields if getattr(has, field) != getattr(wants, field)]
            raise kwire.Fail(f"{what}: record {wants.offset} of partition {wants.partition} has {'; '.join(different)}")
    kwire.want(len(got) == len(wanted), f"{what}: {len(got)} records, not {len(wanted)}")


def nulls_as_empty(record):
    headers = tuple((name, value or b"") for name, value in record.headers)
    return record._replace(key=record.key or b"", value=record.value or b"", headers=headers)
