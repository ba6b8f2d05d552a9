package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker that was replaced answers for 10 s, and ends.
const endsWithin = 20 * time.Second

// takeover pauses the first broker under load, lets a second one take its place, and wakes the first while its clients still send to it.
func takeover(ctx context.Context, s settings, first, second *broker) error {
	if err := first.start(ctx); err != nil {
		return err
	}
	topic, err := createTopic(ctx, first.address, s.partitions)
	if err != nil {
		return err
	}
	probe, err := newProbe(ctx, first.address, topic)
	if err != nil {
		return err
	}
	defer probe.client.Close()
	// Its producer knows the first broker only; it must learn from that one where to go on.
	one, err := startLoad(ctx, "first", topic, s, first.address)
	if err != nil {
		return err
	}
	if err := one.reach(ctx, s.records/3); err != nil {
		return err
	}
	first.signal(syscall.SIGSTOP)
	fmt.Printf("the first was paused with %d of %d records acked\n", one.acked(), s.records)
	if err := second.start(ctx); err != nil {
		return err
	}
	two, err := startLoad(ctx, "second", topic, s, second.address)
	if err != nil {
		return err
	}
	if err := two.reach(ctx, s.records/3); err != nil {
		return err
	}
	fmt.Printf("the second serves and has acked %d records\n", two.acked())

	first.signal(syscall.SIGCONT)
	woken := time.Now()
	if err := probe.watch(ctx, second.address); err != nil {
		return err
	}
	if err := endsWithStatusOne(ctx, first, second.address, woken); err != nil {
		return err
	}
	for _, l := range []*load{one, two} {
		if err := l.end(ctx); err != nil {
			return err
		}
	}
	return verify(ctx, second.address, topic, s.partitions, one, two, probe.load)
}

func endsWithStatusOne(ctx context.Context, first *broker, successor string, woken time.Time) error {
	select {
	case <-first.done:
	case <-time.After(time.Until(woken.Add(endsWithin))):
		return fmt.Errorf("the first broker still runs %v after it was woken", endsWithin)
	case <-ctx.Done():
		return ctx.Err()
	}
	if status, _ := first.ended(); status != 1 {
		return fmt.Errorf("the first broker ended with status %d, not 1", status)
	}
	said, err := os.ReadFile(first.log)
	if err != nil {
		return err
	}
	if !strings.Contains(string(said), successor) {
		return fmt.Errorf("the first broker did not say that %s took over, see %s", successor, first.log)
	}
	fmt.Printf("the first ended with status 1, %.1f s after it was woken\n", time.Since(woken).Seconds())
	return nil
}

// A probe speaks to one broker directly, whatever Metadata says. Its records count as a load, so that an ack which the broker gives
// must be true.
type probe struct {
	client *kgo.Client
	broker *kgo.Broker
	topic  string
	id     [16]byte
	load   *load
}

func newProbe(ctx context.Context, address, topic string) (*probe, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RequestRetries(0))
	if err != nil {
		return nil, err
	}
	p := &probe{client: client, broker: client.SeedBrokers()[0], topic: topic, load: &load{name: "probe", acks: map[int]place{}}}
	// The first answer also opens the connection, which stays while the broker is paused.
	metadata, err := p.metadata(ctx)
	if err == nil {
		p.id = metadata.Topics[0].TopicID
		err = kerr.ErrorForCode(metadata.Topics[0].ErrorCode)
	}
	return p, err
}

// watch sends to the broker that was replaced until it has refused a record and named its successor. Until it notices, it may do
// neither; from then on it must do both.
func (p *probe) watch(ctx context.Context, successor string) error {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	for {
		refused, err := p.produce(ctx)
		if err != nil {
			return fmt.Errorf("producing to the first broker: %w", err)
		}
		named, err := p.leader(ctx)
		if err != nil {
			return fmt.Errorf("asking the first broker for its successor: %w", err)
		}
		if refused && named == successor {
			fmt.Printf("the first refused a record after it had acked %d, and names %s\n", p.load.records, named)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the first broker refuses records: %v; it names %s as the leader, its successor is %s", refused, named, successor)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// produce sends one record. An answer is an ack or NOT_LEADER_OR_FOLLOWER.
func (p *probe) produce(ctx context.Context) (refused bool, err error) {
	number := p.load.records
	partition := kmsg.NewProduceRequestTopicPartition()
	partition.Records = batchOf(p.load.value(number))
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = p.topic, p.id, append(topic.Partitions, partition)
	request := kmsg.NewPtrProduceRequest()
	request.Acks, request.TimeoutMillis, request.Topics = -1, 5000, append(request.Topics, topic)
	answer, err := p.broker.Request(ctx, request)
	if err != nil {
		return false, err
	}
	result := answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	switch err := kerr.ErrorForCode(result.ErrorCode); {
	case err == nil:
		p.load.acks[number] = place{partition.Partition, result.BaseOffset}
		p.load.records++
		return false, nil
	case errors.Is(err, kerr.NotLeaderForPartition):
		return true, nil
	default:
		return false, fmt.Errorf("the answer is %w", err)
	}
}

// batchOf is the bytes of a batch with one record, without a producer id.
func batchOf(value []byte) []byte {
	record := kmsg.NewRecord()
	record.Value = value
	record.Length = int32(len(record.AppendTo(nil)) - 1) // the length itself was one byte, as it was zero
	now := time.Now().UnixMilli()
	batch := kmsg.NewRecordBatch()
	batch.PartitionLeaderEpoch, batch.Magic = -1, 2
	batch.FirstTimestamp, batch.MaxTimestamp = now, now
	batch.ProducerID, batch.ProducerEpoch, batch.FirstSequence = -1, -1, -1
	batch.NumRecords, batch.Records = 1, record.AppendTo(nil)
	const beforeLength, beforeSum = 12, 21
	batch.Length = int32(len(batch.AppendTo(nil)) - beforeLength)
	batch.CRC = int32(crc32.Checksum(batch.AppendTo(nil)[beforeSum:], crc32.MakeTable(crc32.Castagnoli)))
	return batch.AppendTo(nil)
}

func (p *probe) metadata(ctx context.Context) (*kmsg.MetadataResponse, error) {
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &p.topic
	request := kmsg.NewPtrMetadataRequest()
	request.Topics = append(request.Topics, topic)
	answer, err := p.broker.Request(ctx, request)
	if err != nil {
		return nil, err
	}
	metadata := answer.(*kmsg.MetadataResponse)
	if len(metadata.Topics) != 1 {
		return nil, fmt.Errorf("asked for one topic, Metadata has %d", len(metadata.Topics))
	}
	return metadata, nil
}

// leader is the address of the leader of partition 0.
func (p *probe) leader(ctx context.Context) (string, error) {
	metadata, err := p.metadata(ctx)
	if err != nil {
		return "", err
	}
	for _, partition := range metadata.Topics[0].Partitions {
		for _, broker := range metadata.Brokers {
			if partition.Partition == 0 && broker.NodeID == partition.Leader {
				return net.JoinHostPort(broker.Host, strconv.Itoa(int(broker.Port))), nil
			}
		}
	}
	return "nobody", nil
}
