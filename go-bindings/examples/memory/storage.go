package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync"

	kelp "kelp/go-bindings"
)

// memory is a log in memory. It shows all that a host of kelp.Storage has to do, and is gone when
// the process ends.
type memory struct {
	mu             sync.Mutex
	topics         map[kelp.TopicID]kelp.Topic
	partitions     map[partitionID]*partition
	records        map[string][]kelp.Record
	offsets        map[string][]kelp.Offset
	nextProducerID int64
}

type partitionID struct {
	topic kelp.TopicID
	index int32
}

type partition struct {
	start, end int64
	batches    []batch
}

// batch is one record batch, stored as it came.
type batch struct {
	base, next   int64
	maxTimestamp int64
	bytes        []byte
}

// What a batch's header says, at which places.
const (
	lengthAt          = 8
	headerBytes       = 61
	lastOffsetDeltaAt = 23
	maxTimestampAt    = 35
	// The length counts what comes behind it.
	beforeLength = 12
)

func newMemory() *memory {
	return &memory{
		topics:     make(map[kelp.TopicID]kelp.Topic),
		partitions: make(map[partitionID]*partition),
		records:    make(map[string][]kelp.Record),
		offsets:    make(map[string][]kelp.Offset),
	}
}

func (m *memory) LoadTopics(context.Context) (string, []kelp.Topic, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	topics := make([]kelp.Topic, 0, len(m.topics))
	for _, topic := range m.topics {
		topics = append(topics, topic)
	}
	return "memory", topics, nil
}

func (m *memory) CreateTopic(_ context.Context, topic kelp.Topic) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.topics {
		if other.Name == topic.Name {
			return kelp.ErrTopicExists
		}
	}
	m.topics[topic.ID] = topic
	for i := range topic.Partitions {
		m.partitions[partitionID{topic.ID, i}] = &partition{}
	}
	return nil
}

func (m *memory) AlterTopic(_ context.Context, topic kelp.Topic) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, found := m.topics[topic.ID]
	if !found {
		return kelp.ErrUnknownTopicOrPartition
	}
	m.topics[topic.ID] = topic
	for i := before.Partitions; i < topic.Partitions; i++ {
		m.partitions[partitionID{topic.ID, i}] = &partition{}
	}
	return nil
}

func (m *memory) DeleteTopic(_ context.Context, id kelp.TopicID, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	topic, found := m.topics[id]
	if !found {
		return kelp.ErrUnknownTopicOrPartition
	}
	delete(m.topics, id)
	for i := range topic.Partitions {
		delete(m.partitions, partitionID{id, i})
	}
	return nil
}

// locked runs f on a partition, with the lock.
func (m *memory) locked(p kelp.Partition, f func(*partition) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.partitions[partitionID{p.ID, p.Index}]; found != nil {
		return f(found)
	}
	return kelp.ErrUnknownTopicOrPartition
}

func (m *memory) OpenPartition(_ context.Context, p kelp.Partition) (bounds kelp.Bounds, err error) {
	err = m.locked(p, func(p *partition) error {
		bounds = kelp.Bounds{LogStartOffset: p.start, LogEndOffset: p.end}
		return nil
	})
	return bounds, err
}

func (m *memory) Append(_ context.Context, p kelp.Partition, expected, next int64, lent [][]byte) error {
	// The bytes are lent, so what stays is a copy.
	batches, err := split(slices.Concat(lent...))
	if err != nil {
		return err
	}
	return m.locked(p, func(p *partition) error {
		if p.end != expected {
			return &kelp.ConflictError{LogEndOffset: p.end}
		}
		p.batches = append(p.batches, batches...)
		p.end = next
		return nil
	})
}

// split finds the batches in bytes.
func split(bytes []byte) ([]batch, error) {
	var batches []batch
	for len(bytes) > 0 {
		if len(bytes) < headerBytes {
			return nil, fmt.Errorf("a batch of %d bytes", len(bytes))
		}
		length := beforeLength + int(binary.BigEndian.Uint32(bytes[lengthAt:]))
		if length < headerBytes || length > len(bytes) {
			return nil, fmt.Errorf("a batch of %d bytes, of which %d are there", length, len(bytes))
		}
		base := int64(binary.BigEndian.Uint64(bytes))
		batches = append(batches, batch{
			base:         base,
			next:         base + int64(binary.BigEndian.Uint32(bytes[lastOffsetDeltaAt:])) + 1,
			maxTimestamp: int64(binary.BigEndian.Uint64(bytes[maxTimestampAt:])),
			bytes:        bytes[:length:length],
		})
		bytes = bytes[length:]
	}
	return batches, nil
}

func (m *memory) Read(_ context.Context, p kelp.Partition, offset int64, maxBytes int, atLeastOne bool, _ func(int) []byte) (read [][]byte, err error) {
	err = m.locked(p, func(p *partition) error {
		if offset < p.start || offset > p.end {
			return kelp.ErrOffsetOutOfRange
		}
		first := sort.Search(len(p.batches), func(i int) bool { return p.batches[i].next > offset })
		for _, batch := range p.batches[first:] {
			maxBytes -= len(batch.bytes)
			if maxBytes < 0 && !(atLeastOne && len(read) == 0) {
				break
			}
			read = append(read, batch.bytes)
		}
		return nil
	})
	return read, err
}

func (m *memory) SetLogStart(_ context.Context, p kelp.Partition, offset int64) (start int64, err error) {
	err = m.locked(p, func(p *partition) error {
		if offset > p.end {
			return kelp.ErrOffsetOutOfRange
		}
		p.start = max(p.start, offset)
		start = p.start
		p.batches = slices.DeleteFunc(p.batches, func(b batch) bool { return b.next <= start })
		return nil
	})
	return start, err
}

func (m *memory) SeekTime(_ context.Context, p kelp.Partition, timestamp int64) (offset int64, err error) {
	err = m.locked(p, func(p *partition) error {
		offset = p.end
		if i := slices.IndexFunc(p.batches, func(b batch) bool { return b.maxTimestamp >= timestamp }); i >= 0 {
			offset = p.batches[i].base
		}
		return nil
	})
	return offset, err
}

func (m *memory) AllocateProducerIDs(_ context.Context, count uint32) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.nextProducerID
	m.nextProducerID += int64(count)
	return first, nil
}

func (m *memory) AppendRecords(_ context.Context, log string, lent []kelp.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, record := range lent {
		same := func(r kelp.Record) bool { return slices.Equal(r.Key, record.Key) }
		m.records[log] = slices.DeleteFunc(m.records[log], same)
		if !record.Tombstone {
			stored := kelp.Record{Key: slices.Clone(record.Key), Value: slices.Clone(record.Value)}
			m.records[log] = append(m.records[log], stored)
		}
	}
	return nil
}

// atOnce keeps a piece of LoadRecords and LoadOffsets small.
const atOnce = 1000

func (m *memory) LoadRecords(_ context.Context, log string, position uint64) ([]kelp.Record, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	records, next := piece(m.records[log], position)
	return records, next, nil
}

// piece gives what stands at position, and where the next piece begins, 0 if there is none.
func piece[T any](all []T, position uint64) ([]T, uint64) {
	from := min(position, uint64(len(all)))
	to := min(from+atOnce, uint64(len(all)))
	next := to
	if to == uint64(len(all)) {
		next = 0
	}
	return slices.Clone(all[from:to]), next
}

func (m *memory) CommitOffsets(_ context.Context, log string, offsets []kelp.Offset) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, offset := range offsets {
		same := func(o kelp.Offset) bool {
			return o.Group == offset.Group && o.Topic == offset.Topic && o.Partition == offset.Partition
		}
		m.offsets[log] = slices.DeleteFunc(m.offsets[log], same)
		if !offset.Tombstone {
			m.offsets[log] = append(m.offsets[log], offset)
		}
	}
	return nil
}

func (m *memory) LoadOffsets(_ context.Context, log string, position uint64) ([]kelp.Offset, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	offsets, next := piece(m.offsets[log], position)
	return offsets, next, nil
}
