package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

func runSarama(m *member, ctx context.Context) error {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Group.InstanceId = m.instance
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Group.Session.Timeout = m.session
	config.Consumer.Group.Rebalance.Timeout = m.rebalance
	config.Consumer.Group.Heartbeat.Interval = m.heartbeat
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	group, err := sarama.NewConsumerGroup([]string{m.broker}, m.group, config)
	if err != nil {
		return err
	}
	// Sarama tries again. A commit that failed for good is seen when the next owner begins before it.
	go func() {
		for err := range group.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	// Consume is one generation. It may fail while the broker is away.
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{m.topic}, &saramaMember{m}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return group.Close()
}

type saramaMember struct {
	*member
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	sayPartitions(m.member, "ASSIGNED", session.Claims()[m.topic])
	return nil
}

func (m *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	sayPartitions(m.member, "REVOKED", session.Claims()[m.topic])
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case <-session.Context().Done():
			return nil
		case read, open := <-claim.Messages():
			if !open {
				return nil
			}
			read = m.sayWaiting(read, claim)
			session.MarkMessage(read, "")
			session.Commit()
			m.say("COMMITTED", read.Partition, read.Offset+1)
		}
	}
}

// sayWaiting says that it got read and what waits behind it, and returns the last: a commit for each would wait for a fetch each time.
func (m *saramaMember) sayWaiting(read *sarama.ConsumerMessage, claim sarama.ConsumerGroupClaim) *sarama.ConsumerMessage {
	for {
		m.say("RECORD", read.Partition, read.Offset)
		select {
		case next, open := <-claim.Messages():
			if !open {
				return read
			}
			read = next
		default:
			return read
		}
	}
}
