package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
)

func runFranz(m *member, ctx context.Context) error {
	balancer := kgo.RangeBalancer()
	if m.assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	says := func(event string) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			sayPartitions(m, event, partitions[m.topic])
		}
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(m.broker),
		kgo.ConsumerGroup(m.group),
		kgo.ConsumeTopics(m.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(m.session),
		kgo.RebalanceTimeout(m.rebalance),
		kgo.HeartbeatInterval(m.heartbeat),
		kgo.DisableAutoCommit(),
		// Partitions are given up between polls, when all is committed.
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(says("ASSIGNED")),
		kgo.OnPartitionsRevoked(says("REVOKED")),
		kgo.OnPartitionsLost(says("LOST")),
	}
	if m.instance != "" {
		options = append(options, kgo.InstanceID(m.instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		if err := readFranz(m, client, client.PollFetches(ctx)); err != nil {
			return err
		}
		client.AllowRebalance()
	}
	return nil
}

func readFranz(m *member, client *kgo.Client, read kgo.Fetches) error {
	for _, failed := range read.Errors() {
		if outside := new(kgo.ErrGroupSession); errors.As(failed.Err, &outside) {
			fmt.Fprintln(os.Stderr, failed.Err) // it tries again
		} else if failed.Err != context.Canceled {
			return fmt.Errorf("fetch: %w", failed.Err)
		}
	}
	next := make(map[int32]int64)
	for _, record := range read.Records() {
		m.say("RECORD", record.Partition, record.Offset)
		next[record.Partition] = record.Offset + 1
	}
	// What was read is committed though the member is to leave.
	if err := client.CommitRecords(context.Background(), read.Records()...); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for partition, offset := range next {
		m.say("COMMITTED", partition, offset)
	}
	return nil
}
