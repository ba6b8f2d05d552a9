package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// The ConsumerGroup is what the Reader uses; only it tells what is assigned.
func runKafkaGo(m *member, ctx context.Context) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                m.group,
		Brokers:           []string{m.broker},
		Topics:            []string{m.topic},
		GroupBalancers:    []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		SessionTimeout:    m.session,
		RebalanceTimeout:  m.rebalance,
		HeartbeatInterval: m.heartbeat,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	// Close ends the generation, and leaves.
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() { closed <- group.Close() })
	for {
		generation, err := group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return <-closed
		}
		if err != nil {
			// It tries again, as the Reader does.
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		serveKafkaGo(m, generation)
	}
}

// serveKafkaGo reads each partition in a function of the generation; the group waits for all of them before it joins again.
func serveKafkaGo(m *member, generation *kafka.Generation) {
	var partitions []int
	for _, assigned := range generation.Assignments[m.topic] {
		partitions = append(partitions, assigned.ID)
	}
	sayPartitions(m, "ASSIGNED", partitions)
	var reading sync.WaitGroup
	lost := make(chan int, len(partitions))
	for _, assigned := range generation.Assignments[m.topic] {
		reading.Add(1)
		generation.Start(func(ctx context.Context) {
			defer reading.Done()
			err := readKafkaGo(m, ctx, generation, assigned)
			if errors.Is(err, errNotCommitted) {
				fmt.Fprintln(os.Stderr, err)
				lost <- assigned.ID
			} else if err != nil {
				m.say("FAILED", err)
			}
		})
	}
	generation.Start(func(context.Context) {
		reading.Wait()
		close(lost)
		for partition := range lost {
			m.say("LOST", partition)
			partitions = slices.DeleteFunc(partitions, func(p int) bool { return p == partition })
		}
		sayPartitions(m, "REVOKED", partitions)
	})
}

// errNotCommitted is what a generation answers to commits when its connection to the coordinator is gone: it has no other, and ends.
var errNotCommitted = errors.New("not committed")

func readKafkaGo(m *member, ctx context.Context, generation *kafka.Generation, assigned kafka.PartitionAssignment) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{m.broker}, Topic: m.topic, Partition: assigned.ID, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 100 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		return err
	}
	for {
		read, err := reader.ReadMessage(ctx)
		if errors.Is(err, kafka.ErrGenerationEnded) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		m.say("RECORD", read.Partition, read.Offset)
		if err := generation.CommitOffsets(map[string]map[int]int64{m.topic: {read.Partition: read.Offset + 1}}); err != nil {
			return fmt.Errorf("%w: %w", errNotCommitted, err)
		}
		m.say("COMMITTED", read.Partition, read.Offset+1)
	}
}
