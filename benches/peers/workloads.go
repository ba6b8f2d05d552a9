package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// After a workload's time is over, what is in flight may still be answered, for this long.
const flushTimeout = 30 * time.Second

type bench struct {
	settings
	address    string
	topic      string
	topicID    kadm.TopicID
	partitions int
	retries    atomic.Int64
	result     result
}

// client makes the client of a workload. Every setting that matters is here, and is the same for all brokers.
func (b *bench) client(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.address),
		kgo.DefaultProduceTopic(b.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		// Idempotence is the default, with five requests in flight.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(1_000_000),
		kgo.MaxBufferedRecords(32 << 10),
		kgo.FetchMaxPartitionBytes(1 << 20),
		kgo.FetchMaxBytes(50 << 20),
		kgo.RetryBackoffFn(func(int) time.Duration {
			b.retries.Add(1)
			return 50 * time.Millisecond
		}),
	}, more...)...)
}

func (b *bench) failed(err error) {
	b.result.Errors++
	if b.result.FirstError == "" {
		b.result.FirstError = err.Error()
	}
}

// finish works out the rates of records that took this long.
func (b *bench) finish(records int64, took time.Duration) {
	r := &b.result
	r.Records, r.Bytes, r.Seconds, r.Retries = records, records*int64(b.recordBytes), took.Seconds(), b.retries.Load()
	if r.Seconds > 0 {
		r.PerSecond, r.Megabytes = float64(records)/r.Seconds, float64(r.Bytes)/1e6/r.Seconds
	}
}

// payloads gives values that don't compress, without the cost of random numbers for each.
func (b *bench) payloads() func() []byte {
	noise := make([]byte, 4<<20)
	random := rand.NewChaCha8([32]byte{})
	random.Read(noise)
	return func() []byte {
		start := int(random.Uint64() % uint64(len(noise)-b.recordBytes))
		return noise[start : start+b.recordBytes]
	}
}

// produce sends as fast as the broker acks. The time ends with the last ack.
func (b *bench) produce(ctx context.Context) error {
	client, err := b.client(kgo.ProducerLinger(5 * time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	payload := b.payloads()
	var acked int64
	last, started := time.Now(), time.Now()
	deadline := started.Add(b.duration)
	for sent := int64(0); sent*int64(b.recordBytes) < b.maxBytes && time.Now().Before(deadline); sent++ {
		record := &kgo.Record{Partition: int32(sent % int64(b.partitions)), Value: payload()}
		// The promises run one after the other.
		client.Produce(ctx, record, func(_ *kgo.Record, err error) {
			if err != nil {
				b.failed(err)
			} else {
				acked++
				last = time.Now()
			}
		})
	}
	flush, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := client.Flush(flush); err != nil {
		return err
	}
	b.finish(acked, last.Sub(started))
	return nil
}

// consume reads the topic from its start to the end that it has now. The time ends with the last record, so that an end which came
// before the deadline costs nothing.
func (b *bench) consume(ctx context.Context) error {
	starts := map[int32]kgo.Offset{}
	for partition := range int32(b.partitions) {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	admin, err := kgo.NewClient(kgo.SeedBrokers(b.address))
	if err != nil {
		return err
	}
	defer admin.Close()
	ends, err := kadm.NewClient(admin).ListEndOffsets(ctx, b.topic)
	if err != nil {
		return err
	}
	var wanted, read int64
	ends.Each(func(end kadm.ListedOffset) { wanted += end.Offset })

	started := time.Now()
	client, err := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: starts}))
	if err != nil {
		return err
	}
	defer client.Close()
	bounded, cancel := context.WithDeadline(ctx, started.Add(b.duration))
	defer cancel()
	last := started
	for read < wanted && bounded.Err() == nil {
		fetches := client.PollFetches(bounded)
		if some := fetches.NumRecords(); some > 0 {
			read += int64(some)
			last = time.Now()
		}
		for _, failed := range fetches.Errors() {
			if bounded.Err() == nil {
				b.failed(failed.Err)
			}
		}
	}
	b.finish(read, last.Sub(started))
	return nil
}

// latency sends one record at a time, each after the ack of the one before.
func (b *bench) latency(ctx context.Context) error {
	client, err := b.client(kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer client.Close()
	payload := b.payloads()
	// The first record also pays for the connection and the producer id.
	if err := client.ProduceSync(ctx, &kgo.Record{Value: payload()}).FirstErr(); err != nil {
		return err
	}
	var took []time.Duration
	started := time.Now()
	for time.Since(started) < b.duration {
		sent := time.Now()
		if err := client.ProduceSync(ctx, &kgo.Record{Value: payload()}).FirstErr(); err != nil {
			b.failed(err)
			continue
		}
		took = append(took, time.Since(sent))
	}
	b.finish(int64(len(took)), time.Since(started))
	slices.Sort(took)
	b.result.P50, b.result.P99, b.result.P999 = percentile(took, 0.5), percentile(took, 0.99), percentile(took, 0.999)
	return nil
}

// percentile is in milliseconds.
func percentile(sorted []time.Duration, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(part*float64(len(sorted)-1))].Microseconds()) / 1000
}
