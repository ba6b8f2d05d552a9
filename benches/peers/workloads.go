package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
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
	return b.connect(b.address, append([]kgo.Opt{
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

// produce sends as fast as the broker acks. The time ends with the last ack; the broker's CPU time counts until it is done with what came.
func (b *bench) produce(ctx context.Context) error {
	usage := b.watch()
	acked, took, err := b.send(ctx)
	if err != nil {
		return err
	}
	b.finish(acked, took)
	usage.endClient()
	settle(b.session, 5)
	usage.end()
	return nil
}

func (b *bench) send(ctx context.Context) (acked int64, took time.Duration, err error) {
	client, err := b.client(kgo.ProducerLinger(5 * time.Millisecond))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	payload := b.payloads()
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
		return 0, 0, err
	}
	return acked, last.Sub(started), nil
}

// consume reads the topic from its start to the end that it has now. The time ends with the last record, so that an end which came
// before the deadline costs nothing.
func (b *bench) consume(ctx context.Context) error {
	admin, err := b.connect(b.address)
	if err != nil {
		return err
	}
	defer admin.Close()
	ends, err := kadm.NewClient(admin).ListEndOffsets(ctx, b.topic)
	if err != nil {
		return err
	}
	var wanted int64
	ends.Each(func(end kadm.ListedOffset) { wanted += end.Offset })

	usage := b.watch()
	bounded, cancel := context.WithTimeout(ctx, b.duration)
	defer cancel()
	read, took, err := b.read(bounded, func(read int64) bool { return read < wanted })
	if err != nil {
		return err
	}
	b.finish(read, took)
	usage.endClient()
	usage.end()
	return nil
}

// read reads the topic from its start for as long as `more` wants.
func (b *bench) read(ctx context.Context, more func(read int64) bool) (read int64, took time.Duration, err error) {
	starts := map[int32]kgo.Offset{}
	for partition := range int32(b.partitions) {
		starts[partition] = kgo.NewOffset().AtStart()
	}
	started := time.Now()
	client, err := b.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: starts}))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	last := started
	for more(read) && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		if some := fetches.NumRecords(); some > 0 {
			read += int64(some)
			last = time.Now()
		}
		for _, failed := range fetches.Errors() {
			if ctx.Err() == nil {
				b.failed(failed.Err)
			}
		}
	}
	return read, last.Sub(started), nil
}

// cold consumes what the kernel does not have in memory. What the broker itself keeps there is its own affair.
func (b *bench) cold(ctx context.Context) error {
	syscall.Sync()
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0); err != nil {
		return fmt.Errorf("the kernel's caches can't be dropped: %w", err)
	}
	return b.consume(ctx)
}

// both consumes while it is produced: the time is that until everything acked was read.
func (b *bench) both(ctx context.Context) error {
	usage := b.watch()
	var acked, read atomic.Int64
	acked.Store(-1)
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	var reader sync.WaitGroup
	var took time.Duration
	var failed error
	reader.Go(func() {
		_, took, failed = b.read(reading, func(now int64) bool {
			read.Store(now)
			return now != acked.Load()
		})
	})
	sent, _, err := b.send(ctx)
	if err != nil {
		return err
	}
	acked.Store(sent)
	if read.Load() == sent {
		cancel() // It has all, and waits for more.
	}
	time.AfterFunc(flushTimeout, cancel)
	reader.Wait()
	if failed != nil {
		return failed
	}
	if read.Load() != sent {
		b.failed(fmt.Errorf("%d records were acked, and %d read", sent, read.Load()))
	}
	b.finish(read.Load(), took)
	usage.endClient()
	settle(b.session, 5)
	usage.end()
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
	b.percentiles(took)
	return nil
}

// rate sends so many records a second to one partition, and takes the time from when each was due to its ack.
func (b *bench) rate(ctx context.Context, perSecond int) error {
	client, err := b.client(kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer client.Close()
	payload := b.payloads()
	if err := client.ProduceSync(ctx, &kgo.Record{Value: payload()}).FirstErr(); err != nil {
		return err
	}
	usage := b.watch()
	var took []time.Duration
	started := time.Now()
	for sent := range int(b.duration.Seconds() * float64(perSecond)) {
		due := started.Add(time.Duration(sent) * time.Second / time.Duration(perSecond))
		time.Sleep(time.Until(due))
		// The promises run one after the other.
		client.Produce(ctx, &kgo.Record{Value: payload()}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.failed(err)
			} else {
				took = append(took, time.Since(due))
			}
		})
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	b.finish(int64(len(took)), time.Since(started))
	usage.endClient()
	usage.end()
	b.percentiles(took)
	return nil
}

// connections has `count` clients that connected, asked for the versions, and do nothing.
func (b *bench) connections(count int) error {
	settle(b.session, 60)
	before := memory(b.session)
	request := kmsg.NewPtrApiVersionsRequest()
	formatted := kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, request, 0)
	for range count {
		connection, err := net.Dial("tcp", b.address)
		if err != nil {
			return err
		}
		defer connection.Close()
		if _, err := connection.Write(formatted); err != nil {
			return err
		}
		if _, err := connection.Read(make([]byte, 4)); err != nil {
			return err
		}
	}
	settle(b.session, 60)
	b.result.MemberBytes = float64(memory(b.session)-before) / float64(count)
	usage := b.watch()
	time.Sleep(b.duration)
	b.result.Seconds = b.duration.Seconds()
	usage.endClient()
	usage.end()
	return nil
}

func (b *bench) percentiles(took []time.Duration) {
	slices.Sort(took)
	b.result.P50, b.result.P99, b.result.P999 = percentile(took, 0.5), percentile(took, 0.99), percentile(took, 0.999)
}

// percentile is in milliseconds.
func percentile(sorted []time.Duration, part float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(part*float64(len(sorted)-1))].Microseconds()) / 1000
}
