package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topicsOfMany     = 10
	partitionsOfMany = 1000
	idleConnections  = 1000
	// More than a broker keeps of what was written last.
	warmUpBytes = 400 << 20
	recordBytes = 10_000
	// What the writers add each second from then on.
	bytesPerSecond = 4 << 20
	// How much more memory there may be in the end than in the middle: allocators keep what they may need again.
	growthAllowed      = 0.05
	growthAllowedBytes = 24 << 20
)

// memory looks at what a broker takes: idle, with 10,000 partitions and 1,000 connections, and then for some minutes while topics and groups come and
// go, and consumers are far behind. It must not grow.
func memory(ctx context.Context, s settings, b *broker) error {
	if err := b.start(ctx); err != nil {
		return err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := idle(ctx, b, client); err != nil {
		return err
	}

	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 4, 1, nil, "flow"); err != nil {
		return err
	}
	if err := write(ctx, client, warmUpBytes/recordBytes, 0); err != nil {
		return err
	}
	working, stop := context.WithTimeout(ctx, s.duration)
	defer stop()
	var workers sync.WaitGroup
	failed := make(chan error, 10)
	var counts counts
	for _, work := range []func(context.Context) error{
		func(ctx context.Context) error { return write(ctx, client, -1, bytesPerSecond) },
		func(ctx context.Context) error { return readFromStart(ctx, b.address, &counts) },
		func(ctx context.Context) error { return lag(ctx, b.address) },
		func(ctx context.Context) error { return churn(ctx, b.address, "a", &counts) },
		func(ctx context.Context) error { return churn(ctx, b.address, "b", &counts) },
	} {
		workers.Go(func() {
			if err := work(working); err != nil && working.Err() == nil {
				failed <- err
			}
		})
	}
	samples, err := sample(working, b, failed)
	workers.Wait()
	if err != nil {
		return err
	}
	fmt.Printf("%d topics came and went, with a group each; the flow was read from its start %d times\n", counts.topics, counts.readings)
	return flat(samples)
}

// idle prints what partitions and connections cost that nobody uses.
func idle(ctx context.Context, b *broker, client *kgo.Client) error {
	admin := kadm.NewClient(client)
	empty, err := b.rss()
	if err != nil {
		return err
	}
	for topic := range topicsOfMany {
		if _, err := admin.CreateTopic(ctx, partitionsOfMany, 1, nil, fmt.Sprintf("many-%d", topic)); err != nil {
			return err
		}
	}
	created, _ := b.rss()
	var lock sync.Mutex
	for topic := range topicsOfMany {
		for partition := range int32(partitionsOfMany) {
			record := &kgo.Record{Topic: fmt.Sprintf("many-%d", topic), Partition: partition, Value: []byte("one")}
			client.Produce(ctx, record, func(_ *kgo.Record, failed error) {
				lock.Lock()
				defer lock.Unlock()
				err = errors.Join(err, failed)
			})
		}
	}
	if err := errors.Join(client.Flush(ctx), err); err != nil {
		return err
	}
	written, _ := b.rss()
	var connections []*kgo.Client
	defer func() {
		for _, connection := range connections {
			connection.Close()
		}
	}()
	for range idleConnections {
		connection, err := kgo.NewClient(kgo.SeedBrokers(b.address))
		if err != nil {
			return err
		}
		connections = append(connections, connection)
		if err := connection.Ping(ctx); err != nil {
			return err
		}
	}
	connected, _ := b.rss()
	const partitions = topicsOfMany * partitionsOfMany
	fmt.Printf("RSS of an empty broker %d MiB; each of %d partitions takes %d bytes when created and %d more when written to; each of %d connections %d bytes\n",
		empty>>20, partitions, (created-empty)/partitions, (written-created)/partitions, idleConnections, (connected-written)/idleConnections)
	return nil
}

// counts are of what was done; each field has one writer at a time.
type counts struct {
	lock             sync.Mutex
	topics, readings int
}

func (c *counts) add(field *int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	*field++
}

// write sends so many records to the flow, or until ctx ends, at most so many bytes a second if that is not 0.
func write(ctx context.Context, client *kgo.Client, count, bytesPerSecond int) error {
	value := bytes.Repeat([]byte("0123456789"), recordBytes/10)
	began := time.Now()
	var lock sync.Mutex
	var failed error
	for n := 0; n != count && ctx.Err() == nil; n++ {
		client.Produce(ctx, &kgo.Record{Topic: "flow", Partition: int32(n % 4), Value: value}, func(_ *kgo.Record, err error) {
			lock.Lock()
			defer lock.Unlock()
			failed = errors.Join(failed, err)
		})
		if bytesPerSecond > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(n) * recordBytes * time.Second / time.Duration(bytesPerSecond))))
		}
	}
	return errors.Join(client.Flush(ctx), failed)
}

// readFromStart reads the flow from its start to its end, again and again.
func readFromStart(ctx context.Context, address string, counts *counts) error {
	for ctx.Err() == nil {
		for partition := range int32(4) {
			if _, err := readAll(ctx, address, "flow", partition); err != nil {
				return err
			}
		}
		counts.add(&counts.readings)
	}
	return nil
}

// lag reads the flow slowly: it falls back for ever.
func lag(ctx context.Context, address string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics("flow"), kgo.FetchMaxBytes(64<<10), kgo.MaxConcurrentFetches(1),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		if err := client.PollRecords(ctx, 10).Err(); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// churn creates a topic, writes to it, reads it in a group, and deletes both, again and again.
func churn(ctx context.Context, address, name string, counts *counts) error {
	for n := 0; ctx.Err() == nil; n++ {
		if err := once(ctx, address, fmt.Sprintf("churn-%s-%d", name, n)); err != nil {
			return err
		}
		counts.add(&counts.topics)
	}
	return nil
}

func once(ctx context.Context, address, name string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.DefaultProduceTopic(name), kgo.ConsumerGroup(name), kgo.ConsumeTopics(name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 20, 1, nil, name); err != nil {
		return err
	}
	for n := range 100 {
		client.Produce(ctx, kgo.StringRecord(fmt.Sprint(name, n)), nil)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	for read := 0; read < 100; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		read += fetches.NumRecords()
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	client.LeaveGroup()
	if _, err := admin.DeleteGroup(ctx, name); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return err
	}
	_, err = admin.DeleteTopics(ctx, name)
	return err
}

// sample reads the broker's memory each second until ctx ends.
func sample(ctx context.Context, b *broker, failed <-chan error) (samples []int, err error) {
	began, told := time.Now(), 0
	for {
		rss, err := b.rss()
		if err != nil {
			return nil, err
		}
		samples = append(samples, rss)
		if minute := int(time.Since(began).Minutes()); minute > told {
			fmt.Printf("after %d min: RSS %d MiB\n", minute, rss>>20)
			told = minute
		}
		select {
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return samples, nil
		case <-time.After(time.Second):
		}
	}
}

// flat compares the last fifth with the middle one.
func flat(samples []int) error {
	fifth := len(samples) / 5
	if fifth == 0 {
		return fmt.Errorf("%d samples are too few", len(samples))
	}
	median := func(part []int) int {
		sorted := slices.Sorted(slices.Values(part))
		return sorted[len(sorted)/2]
	}
	middle, last := median(samples[2*fifth:3*fifth]), median(samples[len(samples)-fifth:])
	fmt.Printf("RSS is %d MiB in the end, was %d MiB in the middle, at most %d MiB\n", last>>20, middle>>20, slices.Max(samples)>>20)
	if growth := last - middle; growth > growthAllowedBytes && float64(growth) > growthAllowed*float64(middle) {
		return fmt.Errorf("it grew by %d MiB", growth>>20)
	}
	return nil
}

// rss is what the broker's processes have in memory.
func (b *broker) rss() (bytes int, err error) {
	for _, pid := range b.processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			return 0, err
		}
		pages, err := strconv.Atoi(strings.Fields(string(text))[1])
		if err != nil {
			return 0, err
		}
		bytes += pages * os.Getpagesize()
	}
	return bytes, nil
}
