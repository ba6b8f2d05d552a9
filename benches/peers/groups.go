package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Groups are made of raw requests: what a client library computes for an assignment is not the broker's affair.

const (
	// Clients that commit to one group at the same time.
	committersOfOne = 8
	// Partitions in a commit.
	committedPartitions = 10
	joinPartitions      = 1000
	// Groups that form one after the other: how soon a member notices that another one joined is chance.
	joinings = 9
	// Members of the groups of idle members.
	idleGroupSize  = 100
	sessionTimeout = 45 * time.Second
)

// commits has `groups` simple groups commit offsets, each client one after the other.
func (b *bench) commits(ctx context.Context, groups int) error {
	clients := max(groups, committersOfOne)
	var committed atomic.Int64
	var failed sync.Map
	var all sync.WaitGroup
	ready, start := make(chan struct{}, clients), make(chan struct{})
	var deadline time.Time
	for n := range clients {
		client, err := b.client()
		if err != nil {
			return err
		}
		defer client.Close()
		request := b.commit(fmt.Sprintf("%s-%d", b.topic, n%groups))
		all.Go(func() {
			// The first one also pays for the connection and for finding the coordinator.
			err := commit(ctx, client, request, 0)
			// A broker may answer that a topic was created before it knows the topic.
			for waited := 0; kerr.IsRetriable(err) && waited < 100; waited++ {
				time.Sleep(50 * time.Millisecond)
				err = commit(ctx, client, request, 0)
			}
			ready <- struct{}{}
			<-start
			for offset := int64(1); err == nil && time.Now().Before(deadline); offset++ {
				if err = commit(ctx, client, request, offset); err == nil {
					committed.Add(1)
				}
			}
			if err != nil {
				failed.Store(n, err)
			}
		})
	}
	for range clients {
		<-ready
	}
	usage := b.watch()
	started := time.Now()
	deadline = started.Add(b.duration)
	close(start)
	all.Wait()
	took := time.Since(started)
	failed.Range(func(_, err any) bool { b.failed(err.(error)); return true })
	b.finish(committed.Load(), took)
	b.result.Bytes, b.result.Megabytes = 0, 0
	usage.endClient()
	settle(b.session, 5)
	usage.end()
	return nil
}

func (b *bench) commit(group string) *kmsg.OffsetCommitRequest {
	request := kmsg.NewPtrOffsetCommitRequest()
	request.Group = group
	topic := kmsg.NewOffsetCommitRequestTopic()
	// Version 10 has the topic's id instead; this client sends what the broker takes.
	topic.Topic, topic.TopicID = b.topic, b.topicID
	for partition := range int32(committedPartitions) {
		each := kmsg.NewOffsetCommitRequestTopicPartition()
		each.Partition = partition
		topic.Partitions = append(topic.Partitions, each)
	}
	request.Topics = append(request.Topics, topic)
	return request
}

func commit(ctx context.Context, client *kgo.Client, request *kmsg.OffsetCommitRequest, offset int64) error {
	for i := range request.Topics[0].Partitions {
		request.Topics[0].Partitions[i].Offset = offset
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, partition := range response.Topics[0].Partitions {
		if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}

// A member of a classic group.
type member struct {
	client     *kgo.Client
	group      string
	id         string
	generation int32
	// Partitions that it was assigned.
	assigned int
}

// join takes the member into its group's newest generation, and as the leader gives everybody a share of `partitions`.
func (m *member) join(ctx context.Context, topic string, partitions int) error {
	for ctx.Err() == nil {
		join := kmsg.NewPtrJoinGroupRequest()
		join.Group, join.MemberID, join.ProtocolType = m.group, m.id, "consumer"
		join.SessionTimeoutMillis = int32(sessionTimeout.Milliseconds())
		join.RebalanceTimeoutMillis = int32(sessionTimeout.Milliseconds())
		subscription := kmsg.NewConsumerMemberMetadata()
		subscription.Topics = []string{topic}
		protocol := kmsg.NewJoinGroupRequestProtocol()
		protocol.Name, protocol.Metadata = "range", subscription.AppendTo(nil)
		join.Protocols = append(join.Protocols, protocol)
		joined, err := join.RequestWith(ctx, m.client)
		if err != nil {
			return err
		}
		switch err := kerr.ErrorForCode(joined.ErrorCode); err {
		case nil:
		case kerr.MemberIDRequired:
			m.id = joined.MemberID
			continue
		case kerr.RebalanceInProgress:
			continue
		default:
			return fmt.Errorf("JoinGroup: %w", err)
		}
		m.id, m.generation = joined.MemberID, joined.Generation
		err = m.sync(ctx, topic, partitions, joined)
		if err != kerr.RebalanceInProgress {
			return err
		}
	}
	return ctx.Err()
}

func (m *member) sync(ctx context.Context, topic string, partitions int, joined *kmsg.JoinGroupResponse) error {
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = m.group, m.id, m.generation
	kind, name := "consumer", "range"
	sync.ProtocolType, sync.Protocol = &kind, &name
	if joined.LeaderID == m.id {
		for n, other := range joined.Members {
			assignment := kmsg.NewConsumerMemberAssignment()
			share := kmsg.NewConsumerMemberAssignmentTopic()
			share.Topic = topic
			for partition := n; partition < partitions; partition += len(joined.Members) {
				share.Partitions = append(share.Partitions, int32(partition))
			}
			assignment.Topics = append(assignment.Topics, share)
			each := kmsg.NewSyncGroupRequestGroupAssignment()
			each.MemberID, each.MemberAssignment = other.MemberID, assignment.AppendTo(nil)
			sync.GroupAssignment = append(sync.GroupAssignment, each)
		}
	}
	synced, err := sync.RequestWith(ctx, m.client)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(synced.ErrorCode); err != nil {
		return err
	}
	var assignment kmsg.ConsumerMemberAssignment
	if err := assignment.ReadFrom(synced.MemberAssignment); err != nil {
		return err
	}
	m.assigned = 0
	for _, share := range assignment.Topics {
		m.assigned += len(share.Partitions)
	}
	return nil
}

// heartbeat tells whether the generation is still the newest.
func (m *member) heartbeat(ctx context.Context) (bool, error) {
	request := kmsg.NewPtrHeartbeatRequest()
	request.Group, request.MemberID, request.Generation = m.group, m.id, m.generation
	response, err := request.RequestWith(ctx, m.client)
	if err != nil {
		return false, err
	}
	switch err := kerr.ErrorForCode(response.ErrorCode); err {
	case nil:
		return true, nil
	case kerr.RebalanceInProgress, kerr.IllegalGeneration:
		return false, nil
	default:
		return false, fmt.Errorf("Heartbeat: %w", err)
	}
}

// How soon a member learns that it has to join again, because another one did.
const notice = 50 * time.Millisecond

// gather has all members join at once, and again whenever somebody else does, until one generation has them all and all partitions.
func gather(ctx context.Context, members []*member, topic string, partitions int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	joined := make(chan error)
	var all sync.WaitGroup
	defer all.Wait()
	// Those who are done stay in the group until all are.
	var lock sync.Mutex
	for _, m := range members {
		all.Go(func() {
			for ctx.Err() == nil {
				next := *m
				err := next.join(ctx, topic, partitions)
				lock.Lock()
				*m = next
				lock.Unlock()
				select {
				case joined <- err:
				case <-ctx.Done():
				}
				for current := err == nil; current && err == nil; {
					select {
					case <-time.After(notice):
						current, err = next.heartbeat(ctx)
					case <-ctx.Done():
						return
					}
				}
				if err != nil {
					select {
					case joined <- err:
					case <-ctx.Done():
					}
					return
				}
			}
		})
	}
	for {
		if err := <-joined; err != nil {
			cancel()
			return err
		}
		if isOneGeneration(&lock, members, partitions) {
			cancel()
			return nil
		}
	}
}

func isOneGeneration(lock *sync.Mutex, members []*member, partitions int) bool {
	lock.Lock()
	defer lock.Unlock()
	assigned := 0
	for _, m := range members {
		if m.generation != members[0].generation {
			return false
		}
		assigned += m.assigned
	}
	return assigned == partitions
}

func (b *bench) members(count int, group string, clients []*kgo.Client) []*member {
	members := make([]*member, count)
	for n := range members {
		members[n] = &member{client: clients[n%len(clients)], group: group}
	}
	return members
}

func (b *bench) clients(count int) (clients []*kgo.Client, closeAll func(), err error) {
	closeAll = func() {
		for _, client := range clients {
			client.Close()
		}
	}
	for range count {
		client, err := b.client()
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		clients = append(clients, client)
		// A connection of its own, before the time begins.
		if err := client.Ping(context.Background()); err != nil {
			closeAll()
			return nil, nil, err
		}
	}
	return clients, closeAll, nil
}

// join is how long a group of `count` members takes from its first JoinGroup until all partitions are assigned: the median of several groups.
func (b *bench) join(ctx context.Context, count int) error {
	clients, closeAll, err := b.clients(count)
	if err != nil {
		return err
	}
	defer closeAll()
	var took []time.Duration
	for n := range joinings {
		members := b.members(count, fmt.Sprintf("%s-%d", b.topic, n), clients)
		started := time.Now()
		if err := gather(ctx, members, b.topic, joinPartitions); err != nil {
			return err
		}
		took = append(took, time.Since(started))
	}
	b.percentiles(took)
	b.result.Seconds = b.result.P50 / 1000
	return nil
}

// idle has `count` members in groups of 100 send heartbeats, each every three seconds as clients do, and takes the broker's CPU time.
func (b *bench) idle(ctx context.Context, count int) error {
	clients, closeAll, err := b.clients(idleGroupSize)
	if err != nil {
		return err
	}
	defer closeAll()
	// What earlier workloads left to do is not what members cost.
	settle(b.session, 60)
	before := memory(b.session)
	var all []*member
	for n := range count / idleGroupSize {
		members := b.members(idleGroupSize, fmt.Sprintf("%s-%d", b.topic, n), clients)
		if err := gather(ctx, members, b.topic, joinPartitions); err != nil {
			return err
		}
		all = append(all, members...)
	}
	b.result.MemberBytes = float64(memory(b.session)-before) / float64(len(all))
	const interval = 3 * time.Second
	rounds := max(1, int(b.duration/interval))
	spent, started := cpu(b.session), time.Now()
	errs := make(chan error, len(clients))
	for c, client := range clients {
		go func() {
			var mine []*member
			for _, m := range all {
				if m.client == client {
					mine = append(mine, m)
				}
			}
			errs <- beat(ctx, mine, rounds, interval, time.Duration(c)*interval/time.Duration(len(clients)))
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			b.failed(err)
		}
	}
	b.finish(int64(rounds*len(all)), time.Since(started))
	b.result.Bytes, b.result.Megabytes = 0, 0
	b.result.CPU = (cpu(b.session) - spent).Seconds() / b.result.Seconds
	return nil
}

// beat spreads the members' heartbeats over each interval.
func beat(ctx context.Context, members []*member, rounds int, interval, offset time.Duration) error {
	step := interval / time.Duration(len(members))
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	select {
	case <-time.After(offset % step):
	case <-ctx.Done():
	}
	for range rounds {
		for _, m := range members {
			<-ticker.C
			current, err := m.heartbeat(ctx)
			if err != nil {
				return err
			}
			if !current {
				return fmt.Errorf("group %s is not stable", m.group)
			}
		}
	}
	return nil
}
