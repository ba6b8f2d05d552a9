package kelp

// #include "bridge.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"
)

// Errors that a Storage answers with, alone or wrapped. With any other one it is unknown what was
// done; Kelp looks, and clients try again.
var (
	ErrOffsetOutOfRange        = errors.New("the offset is outside of the log")
	ErrUnknownTopicOrPartition = errors.New("no such topic or partition")
	ErrTopicExists             = errors.New("the topic exists")
	// ErrNotLeader: another process has the partition now; nothing was changed.
	ErrNotLeader = errors.New("another process has the partition")
)

// ConflictError is the answer of an Append that appended nothing, as the log ends elsewhere.
type ConflictError struct{ LogEndOffset int64 }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the log ends at %d", e.LogEndOffset)
}

// TopicID is never used for another topic. A name may be, once its topic is deleted.
type TopicID [16]byte

// Topic is a topic; its partitions are numbered from 0.
type Topic struct {
	ID         TopicID
	Name       string
	Partitions int32
	// Settings are what was set for this topic, under Kafka's names.
	Settings map[string]string
}

// Partition is one partition of a topic. The id is what counts.
type Partition struct {
	ID    TopicID
	Topic string
	Index int32
}

// Bounds say where a partition's log stands.
type Bounds struct {
	// LogStartOffset is the first offset that can be read.
	LogStartOffset int64
	// LogEndOffset is the offset that the next record gets.
	LogEndOffset int64
	// LeaderEpoch grows, and never falls, whenever another process, or another start of this one,
	// becomes the one that appends.
	LeaderEpoch int32
}

// Storage is a log of the program's own, for the records of all topics.
//
// The methods are called on many goroutines at once. Their context is done when nobody waits for
// the answer any more; that of Append, AppendRecords and CommitOffsets only when the engine is
// closed. A Storage may also be a [TimeIndex], and [Coordinators], without which there are no
// idempotent producers, and [Groups], without which there are no consumer groups, and [TopicChanges].
type Storage interface {
	// LoadTopics is asked once, first: clients are served when it has returned. The cluster's id
	// is made when the storage is first used, and stays the same.
	LoadTopics(ctx context.Context) (clusterID string, topics []Topic, err error)

	CreateTopic(ctx context.Context, topic Topic) error

	// DeleteTopic deletes a topic with all its records.
	DeleteTopic(ctx context.Context, id TopicID, name string) error

	OpenPartition(ctx context.Context, p Partition) (Bounds, error)

	// Append appends record batches at the offset expected, after which the log ends at next; or
	// nothing, when the log ends elsewhere: then the answer is a *ConflictError. Success means
	// that they are as durable as an acknowledgement is to be, and that Read shows them.
	//
	// For one partition there is never more than one Append at a time. A batch may lie across
	// several slices; they are lent until Append returns.
	Append(ctx context.Context, p Partition, expected, next int64, slices [][]byte) error

	// Read gives whole batches, each slice one or more of them, from the one that holds offset
	// on, at most maxBytes in all; with atLeastOne the first batch also if it is longer. At the
	// log's end there is nothing. Memory of alloc is zeroed and Kelp's: slices that lie in it are
	// not copied. It must not be used after Read returned.
	Read(ctx context.Context, p Partition, offset int64, maxBytes int, atLeastOne bool, alloc func(n int) []byte) ([][]byte, error)

	// SetLogStart moves the log start forward, never back and never past the log's end. It gives
	// the log start then.
	SetLogStart(ctx context.Context, p Partition, offset int64) (int64, error)
}

// TimeIndex is a Storage that finds records by their time.
type TimeIndex interface {
	// SeekTime gives an offset from which a search for the first record of timestamp (milliseconds
	// since 1970) or later may begin: never above that record, the nearer the better.
	SeekTime(ctx context.Context, p Partition, timestamp int64) (int64, error)
}

// TopicChanges is a Storage whose topics can be changed. Without it topics stay as they were created.
type TopicChanges interface {
	// AlterTopic stores a topic anew: with the settings and the partitions that it is to have. There
	// are never fewer partitions than before; those that come are empty. There is never more than
	// one AlterTopic at a time.
	AlterTopic(ctx context.Context, topic Topic) error
}

// Record is a record of a coordinator. A Tombstone has no value, and deletes its key.
type Record struct {
	Key, Value []byte
	Tombstone  bool
}

// Coordinators is a Storage that keeps what Kafka's coordinators need.
type Coordinators interface {
	// AllocateProducerIDs takes count ids that no process had or will have, and gives the first.
	AllocateProducerIDs(ctx context.Context, count uint32) (first int64, err error)

	// AppendRecords stores records in the coordinator's log of that name, all or none, durably,
	// behind those before. The records are lent until it returns.
	AppendRecords(ctx context.Context, log string, records []Record) error

	// LoadRecords gives records in the order in which they were stored, in as many pieces as the
	// storage likes; the last one of each key is enough. The position is 0 for the first piece,
	// then what next was; next is 0 when there is no more. A log without records is empty.
	LoadRecords(ctx context.Context, log string, position uint64) (records []Record, next uint64, err error)
}

// Offset is the offset of a consumer group in a partition. Group, Topic and Partition are its key: the
// last one counts, and a Tombstone deletes it.
type Offset struct {
	Group, Topic string
	// TopicID is the topic that the offset is of, as far as it is known: a later one may have its
	// name.
	TopicID   TopicID
	Partition int32
	// LeaderEpoch is that of the last record that was read, or -1.
	LeaderEpoch int32
	// Offset is the next record to be read.
	Offset int64
	// Metadata are the client's own words.
	Metadata string
	// CommitTimestamp and ExpireTimestamp are milliseconds since 1970. An offset that has no
	// ExpireTimestamp of its own, -1, expires as the properties say; Kelp deletes it.
	CommitTimestamp, ExpireTimestamp int64
	Tombstone                        bool
}

// Groups is a Storage that keeps the offsets of consumer groups. The groups themselves are kept by
// [Coordinators], in logs whose names begin with "groups".
type Groups interface {
	Coordinators

	// CommitOffsets stores offsets, all or none, durably, in their order and behind those before.
	// The log is that of the coordinator that has the groups, and never changes for a group. For
	// one log there is never more than one CommitOffsets or AppendRecords at a time. When it
	// returns an error, the offsets may be stored or not, but are not stored later.
	CommitOffsets(ctx context.Context, log string, offsets []Offset) error

	// LoadOffsets gives the offsets that were committed with a log's name, in pieces as
	// [Coordinators] gives records.
	LoadOffsets(ctx context.Context, log string, position uint64) (offsets []Offset, next uint64, err error)
}

//export kelp_go_load_topics
func kelp_go_load_topics(h C.uintptr_t, op *C.kelp_load_topics) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		clusterID, topics, err := host.Storage.LoadTopics(o.ctx)
		if err == nil {
			op.cluster_id = o.giveText(clusterID)
			op.topics, err = o.giveTopics(topics)
			op.topic_count = C.size_t(len(topics))
		}
		return status(err), err
	})
}

func (o operation) giveTopics(topics []Topic) (*C.kelp_topic, error) {
	array, err := allocArray[C.kelp_topic](o, len(topics))
	if err != nil {
		return nil, err
	}
	for i, topic := range topics {
		settings, err := allocArray[C.kelp_setting](o, len(topic.Settings))
		if err != nil {
			return nil, err
		}
		n := 0
		for name, value := range topic.Settings {
			settings[n] = C.kelp_setting{name: o.giveText(name), value: o.giveText(value)}
			n++
		}
		array[i].id = cID(topic.ID)
		array[i].name = o.giveText(topic.Name)
		array[i].settings = unsafe.SliceData(settings)
		array[i].setting_count = C.size_t(n)
		array[i].partition_count = C.int32_t(topic.Partitions)
	}
	return unsafe.SliceData(array), nil
}

//export kelp_go_create_topic
func kelp_go_create_topic(h C.uintptr_t, op *C.kelp_create_topic) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		err := host.Storage.CreateTopic(o.ctx, goTopic(op.topic))
		return status(err), err
	})
}

//export kelp_go_alter_topic
func kelp_go_alter_topic(h C.uintptr_t, op *C.kelp_alter_topic) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		err := host.Storage.(TopicChanges).AlterTopic(o.ctx, goTopic(op.topic))
		return status(err), err
	})
}

func goTopic(t C.kelp_topic) Topic {
	topic := Topic{
		ID:         goID(t.id),
		Name:       text(t.name),
		Partitions: int32(t.partition_count),
		Settings:   make(map[string]string),
	}
	for _, s := range unsafe.Slice(t.settings, int(t.setting_count)) {
		topic.Settings[text(s.name)] = text(s.value)
	}
	return topic
}

//export kelp_go_delete_topic
func kelp_go_delete_topic(h C.uintptr_t, op *C.kelp_delete_topic) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		err := host.Storage.DeleteTopic(o.ctx, goID(op.topic_id), text(op.topic))
		return status(err), err
	})
}

//export kelp_go_open_partition
func kelp_go_open_partition(h C.uintptr_t, op *C.kelp_open_partition) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		bounds, err := host.Storage.OpenPartition(o.ctx, partition(op.partition))
		op.log_start_offset = C.int64_t(bounds.LogStartOffset)
		op.log_end_offset = C.int64_t(bounds.LogEndOffset)
		op.leader_epoch = C.int32_t(bounds.LeaderEpoch)
		return status(err), err
	})
}

//export kelp_go_append
func kelp_go_append(h C.uintptr_t, op *C.kelp_append) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		slices := borrowAll(op.slices, op.slice_count)
		expected, next := int64(op.expected_base_offset), int64(op.next_offset)
		err := host.Storage.Append(o.ctx, partition(op.partition), expected, next, slices)
		if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
			op.log_end_offset = C.int64_t(conflict.LogEndOffset)
			return C.KELP_CONFLICT, nil
		}
		return status(err), err
	})
}

//export kelp_go_read_batches
func kelp_go_read_batches(h C.uintptr_t, op *C.kelp_read) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		memory := memory{op: o.op}
		slices, err := host.Storage.Read(o.ctx, partition(op.partition), int64(op.offset),
			int(op.max_bytes), op.at_least_one != 0, memory.alloc)
		if err != nil {
			return status(err), err
		}
		array, err := allocArray[C.kelp_bytes](o, len(slices))
		for i := 0; err == nil && i < len(slices); i++ {
			array[i], err = memory.give(slices[i])
		}
		op.slices = unsafe.SliceData(array)
		op.slice_count = C.size_t(len(array))
		return status(err), err
	})
}

//export kelp_go_set_log_start
func kelp_go_set_log_start(h C.uintptr_t, op *C.kelp_set_log_start) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		start, err := host.Storage.SetLogStart(o.ctx, partition(op.partition), int64(op.offset))
		op.log_start_offset = C.int64_t(start)
		return status(err), err
	})
}

//export kelp_go_seek_time
func kelp_go_seek_time(h C.uintptr_t, op *C.kelp_seek_time) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		index := host.Storage.(TimeIndex)
		offset, err := index.SeekTime(o.ctx, partition(op.partition), int64(op.timestamp))
		op.offset = C.int64_t(offset)
		return status(err), err
	})
}

//export kelp_go_allocate_producer_ids
func kelp_go_allocate_producer_ids(h C.uintptr_t, op *C.kelp_allocate_producer_ids) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		first, err := host.Storage.(Coordinators).AllocateProducerIDs(o.ctx, uint32(op.count))
		op.first = C.int64_t(first)
		return status(err), err
	})
}

//export kelp_go_append_records
func kelp_go_append_records(h C.uintptr_t, op *C.kelp_append_records) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		records := make([]Record, op.record_count)
		for i, r := range unsafe.Slice(op.records, int(op.record_count)) {
			records[i] = Record{borrow(r.key), borrow(r.value), r.is_tombstone != 0}
		}
		err := host.Storage.(Coordinators).AppendRecords(o.ctx, text(op.log), records)
		return status(err), err
	})
}

//export kelp_go_load_records
func kelp_go_load_records(h C.uintptr_t, op *C.kelp_load_records) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		coordinators := host.Storage.(Coordinators)
		records, next, err := coordinators.LoadRecords(o.ctx, text(op.log), uint64(op.position))
		if err != nil {
			return status(err), err
		}
		memory := memory{op: o.op}
		array, err := allocArray[C.kelp_record](o, len(records))
		for i := 0; err == nil && i < len(records); i++ {
			if records[i].Tombstone {
				array[i].is_tombstone = 1
			}
			if array[i].key, err = memory.give(records[i].Key); err == nil {
				array[i].value, err = memory.give(records[i].Value)
			}
		}
		op.records = unsafe.SliceData(array)
		op.record_count = C.size_t(len(array))
		op.next_position = C.uint64_t(next)
		return status(err), err
	})
}

//export kelp_go_commit_offsets
func kelp_go_commit_offsets(h C.uintptr_t, op *C.kelp_commit_offsets) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		offsets := make([]Offset, op.offset_count)
		for i, c := range unsafe.Slice(op.offsets, int(op.offset_count)) {
			offsets[i] = Offset{
				Group:           text(c.group),
				Topic:           text(c.topic),
				TopicID:         goID(c.topic_id),
				Partition:       int32(c.partition),
				LeaderEpoch:     int32(c.leader_epoch),
				Offset:          int64(c.offset),
				Metadata:        text(c.metadata),
				CommitTimestamp: int64(c.commit_timestamp),
				ExpireTimestamp: int64(c.expire_timestamp),
				Tombstone:       c.is_tombstone != 0,
			}
		}
		err := host.Storage.(Groups).CommitOffsets(o.ctx, text(op.log), offsets)
		return status(err), err
	})
}

//export kelp_go_load_offsets
func kelp_go_load_offsets(h C.uintptr_t, op *C.kelp_load_offsets) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		offsets, next, err := host.Storage.(Groups).LoadOffsets(o.ctx, text(op.log), uint64(op.position))
		if err != nil {
			return status(err), err
		}
		array, err := allocArray[C.kelp_offset](o, len(offsets))
		for i := 0; err == nil && i < len(offsets); i++ {
			array[i], err = o.giveOffset(offsets[i])
		}
		op.offsets = unsafe.SliceData(array)
		op.offset_count = C.size_t(len(array))
		op.next_position = C.uint64_t(next)
		return status(err), err
	})
}

// giveOffset copies an offset for the answer. An offset whose texts were left out for want of memory
// would be another one.
func (o operation) giveOffset(offset Offset) (C.kelp_offset, error) {
	c := C.kelp_offset{
		topic_id:         cID(offset.TopicID),
		partition:        C.int32_t(offset.Partition),
		leader_epoch:     C.int32_t(offset.LeaderEpoch),
		offset:           C.int64_t(offset.Offset),
		commit_timestamp: C.int64_t(offset.CommitTimestamp),
		expire_timestamp: C.int64_t(offset.ExpireTimestamp),
	}
	if offset.Tombstone {
		c.is_tombstone = 1
	}
	memory := memory{op: o.op}
	var err error
	give := func(text string) C.kelp_str {
		given, failed := memory.give([]byte(text))
		err = errors.Join(err, failed)
		return C.kelp_str{ptr: (*C.char)(unsafe.Pointer(given.ptr)), len: given.len}
	}
	c.group, c.topic, c.metadata = give(offset.Group), give(offset.Topic), give(offset.Metadata)
	return c, err
}

func partition(p C.kelp_partition) Partition {
	return Partition{ID: goID(p.topic_id), Topic: text(p.topic), Index: int32(p.index)}
}

func goID(id [16]C.uint8_t) TopicID {
	return *(*TopicID)(unsafe.Pointer(&id))
}

func cID(id TopicID) [16]C.uint8_t {
	return *(*[16]C.uint8_t)(unsafe.Pointer(&id))
}
