package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	valueBytes = 200
	// The producer holds no more than this: what a crash interrupts is bounded, and the load waits for the broker to come back.
	inFlight = 1000
)

// A load is an acks=all producer that sends records with consecutive numbers and remembers where each was acked. It is idempotent, unless it is
// plain: then a record may be stored twice whose answer was lost.
type load struct {
	name    string
	client  *kgo.Client
	records int // How many there are; of an endless load, how many were sent, once it has ended.
	plain   bool
	pause   time.Duration // behind each record
	stop    chan struct{} // closed to end an endless load

	lock    sync.Mutex
	acks    map[int]place // by the record's number
	changed chan struct{} // closed and replaced when acks or failed change
	failed  error
	sent    chan error // gets the result of the whole load
}

type place struct {
	partition int32
	offset    int64
}

func startLoad(ctx context.Context, name, topic string, s settings, addresses ...string) (*load, error) {
	l := &load{name: name, records: s.records}
	return l, l.start(ctx, topic, s, addresses...)
}

// startEndlessLoad starts one that sends so many records a second until it is ended.
func startEndlessLoad(ctx context.Context, name, topic string, plain bool, rate int, s settings, address string) (*load, error) {
	l := &load{name: name, records: math.MaxInt, plain: plain, pause: time.Second / time.Duration(rate)}
	return l, l.start(ctx, topic, s, address)
}

func (l *load) start(ctx context.Context, topic string, s settings, addresses ...string) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(addresses...),
		kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(inFlight),
		kgo.ProducerBatchMaxBytes(16 << 10),
		kgo.ProducerLinger(time.Millisecond),
		// Lost producer state must fail the test. The default begins anew, with a new producer id.
		kgo.StopProducerOnDataLossDetected(),
		kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
	if l.plain {
		// With several requests in flight, a retry would come behind what was sent after it.
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	l.client, l.acks, l.changed = client, map[int]place{}, make(chan struct{})
	l.stop, l.sent = make(chan struct{}), make(chan error, 1)
	go l.run(ctx, int32(s.partitions))
	return nil
}

func (l *load) run(ctx context.Context, partitions int32) {
	sent, began := 0, time.Now()
	for ; sent < l.records && l.failure() == nil && !l.stopped(ctx, began.Add(time.Duration(sent)*l.pause)); sent++ {
		number := sent
		record := &kgo.Record{Partition: int32(number) % partitions, Value: l.value(number)}
		l.client.Produce(ctx, record, func(r *kgo.Record, err error) { l.acknowledge(number, r, err) })
	}
	err := errors.Join(l.client.Flush(ctx), l.failure())
	l.records = sent
	l.sent <- err
}

// stopped waits until the next record of an endless load is due, and tells whether it is not to be sent.
func (l *load) stopped(ctx context.Context, due time.Time) bool {
	if l.pause == 0 {
		return false
	}
	select {
	case <-l.stop:
	case <-ctx.Done():
	case <-time.After(time.Until(due)):
		return false
	}
	return true
}

// value is different for every record of every load.
func (l *load) value(number int) []byte {
	head := fmt.Appendf(nil, "%s %d ", l.name, number)
	return append(head, bytes.Repeat([]byte("."), valueBytes-len(head))...)
}

func (l *load) acknowledge(number int, r *kgo.Record, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if err == nil {
		l.acks[number] = place{r.Partition, r.Offset}
	} else if l.failed == nil {
		l.failed = fmt.Errorf("record %d of %s: %w", number, l.name, err)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *load) failure() error {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.failed
}

func (l *load) acked() int {
	l.lock.Lock()
	defer l.lock.Unlock()
	return len(l.acks)
}

// reach waits until that many records are acked.
func (l *load) reach(ctx context.Context, count int) error {
	for {
		l.lock.Lock()
		acked, failed, changed := len(l.acks), l.failed, l.changed
		l.lock.Unlock()
		if failed != nil || acked >= count {
			return failed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s stands still with %d of %d records acked", l.name, acked, l.records)
		}
	}
}

// end waits until all records are acked.
func (l *load) end(ctx context.Context) error {
	if err := l.reach(ctx, l.records); err != nil {
		return err
	}
	defer l.client.Close()
	return <-l.sent
}

// finish ends an endless load, and waits until all records are acked.
func (l *load) finish(ctx context.Context) error {
	close(l.stop)
	defer l.client.Close()
	select {
	case err := <-l.sent:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s stands still with %d records acked", l.name, l.acked())
	}
}

func createTopic(ctx context.Context, address string, partitions int) (string, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return "", err
	}
	defer client.Close()
	topic := fmt.Sprintf("crash-%d", time.Now().UnixMilli())
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
	return topic, err
}
