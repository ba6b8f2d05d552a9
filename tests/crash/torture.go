package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// Records a second of each load: a log that a test can read back.
	rate = 1500
	// The longest that a broker lives, and that it starts before it is killed.
	longestLife  = 2 * time.Second
	longestStart = 500 * time.Millisecond
	// Of so many brokers that start again, one is killed meanwhile.
	killsInStart = 4
)

// torture kills the broker at random moments, while idempotent and plain producers write and a consumer reads, and starts it again.
func torture(ctx context.Context, s settings, b *broker) error {
	fmt.Printf("seed %d\n", s.seed)
	random := rand.New(rand.NewPCG(s.seed, 0))
	moment := func(longest time.Duration) time.Duration { return time.Duration(random.Int64N(int64(longest))) }
	if err := b.start(ctx); err != nil {
		return err
	}
	topic, err := createTopic(ctx, b.address, s.partitions)
	if err != nil {
		return err
	}
	var loads []*load
	for _, name := range []string{"idempotent-1", "idempotent-2", "plain-1", "plain-2"} {
		l, err := startEndlessLoad(ctx, name, topic, name[0] == 'p', rate, s, b.address)
		if err != nil {
			return err
		}
		loads = append(loads, l)
	}
	reader, err := startReader(ctx, topic, s.partitions, b.address)
	if err != nil {
		return err
	}
	var slowest time.Duration
	for kills := 0; kills < s.kills; {
		for _, l := range loads {
			if err := l.reach(ctx, l.acked()+1); err != nil {
				return err
			}
		}
		time.Sleep(moment(longestLife))
		b.kill()
		killed := time.Now()
		for kills++; kills < s.kills && random.IntN(killsInStart) == 0; kills++ {
			if err := b.spawn(); err != nil {
				return err
			}
			time.Sleep(moment(longestStart))
			b.kill()
		}
		if err := b.start(ctx); err != nil {
			return err
		}
		slowest = max(slowest, time.Since(killed))
		if slowest > s.within {
			return fmt.Errorf("it serves %v after a kill", slowest)
		}
	}
	fmt.Printf("%d kills; at most %.1f s until it served again\n", s.kills, slowest.Seconds())
	for _, l := range loads {
		if err := l.finish(ctx); err != nil {
			return err
		}
	}
	if err := reader.finish(ctx, b.address); err != nil {
		return err
	}
	return verify(ctx, b.address, topic, s.partitions, loads...)
}

// A reader consumes the topic while the broker is killed: it gets the offsets of each partition one after the other.
type reader struct {
	client *kgo.Client
	topic  string
	next   map[int32]int64
	values map[place]string
	ends   chan map[int32]int64 // Where it is to end, when that is known.
	done   chan error
}

func startReader(ctx context.Context, topic string, partitions int, address string) (*reader, error) {
	from := map[int32]kgo.Offset{}
	for partition := range int32(partitions) {
		from[partition] = kgo.NewOffset().At(0)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	r := &reader{
		client: client, topic: topic, next: map[int32]int64{}, values: map[place]string{},
		ends: make(chan map[int32]int64, 1), done: make(chan error, 1),
	}
	go func() { r.done <- r.run(ctx) }()
	return r, nil
}

func (r *reader) run(ctx context.Context) error {
	defer r.client.Close()
	var ends map[int32]int64
	for ends == nil || !r.reached(ends) {
		// It looks now and then whether it is to end.
		poll, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := r.client.PollFetches(poll)
		cancel()
		for _, failed := range fetches.Errors() {
			if ctx.Err() != nil || !errors.Is(failed.Err, context.DeadlineExceeded) {
				return fmt.Errorf("the consumer of partition %d: %w", failed.Partition, failed.Err)
			}
		}
		for _, record := range fetches.Records() {
			if record.Offset != r.next[record.Partition] {
				return fmt.Errorf("the consumer of partition %d got offset %d, not %d", record.Partition, record.Offset, r.next[record.Partition])
			}
			r.next[record.Partition]++
			r.values[place{record.Partition, record.Offset}] = string(record.Value)
		}
		select {
		case ends = <-r.ends:
		default:
		}
	}
	return nil
}

func (r *reader) reached(ends map[int32]int64) bool {
	for partition, end := range ends {
		if r.next[partition] < end {
			return false
		}
	}
	return true
}

// finish waits until it has read all there is, and compares that with what is there now.
func (r *reader) finish(ctx context.Context, address string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, r.topic)
	if err != nil {
		return err
	}
	ends := map[int32]int64{}
	listed.Each(func(end kadm.ListedOffset) { ends[end.Partition] = end.Offset })
	if err := listed.Error(); err != nil {
		return err
	}
	r.ends <- ends
	if err := <-r.done; err != nil {
		return err
	}
	for partition := range ends {
		records, err := readAll(ctx, address, r.topic, partition)
		if err != nil {
			return err
		}
		for _, record := range records {
			if r.values[place{partition, record.Offset}] != string(record.Value) {
				return fmt.Errorf("at offset %d of partition %d is another record than the consumer got", record.Offset, partition)
			}
		}
	}
	fmt.Printf("the consumer got all %d records, in order\n", len(r.values))
	return nil
}
