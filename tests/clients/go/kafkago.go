package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

type kafkaGo struct {
	broker    string
	transport *kafka.Transport
	admin     *kafka.Client
}

var kafkaGoCodecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

func newKafkaGo(broker, level string) (client, error) {
	if level != "" {
		return nil, errors.New("kafka-go cannot be told a level")
	}
	transport := &kafka.Transport{}
	return &kafkaGo{broker, transport, &kafka.Client{Addr: kafka.TCP(broker), Transport: transport}}, nil
}

func (k *kafkaGo) create(ctx context.Context, topic string, partitions int) error {
	config := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	answer, err := k.admin.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (k *kafkaGo) delete(ctx context.Context, topic string) error {
	answer, err := k.admin.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

// produce lets the Writer make the topic, which does nothing to one that exists.
func (k *kafkaGo) produce(ctx context.Context, topic, codec string, records []record) error {
	var lock sync.Mutex
	var acks []error
	writer := &kafka.Writer{
		Addr:                   kafka.TCP(k.broker),
		Topic:                  topic,
		Transport:              k.transport,
		AllowAutoTopicCreation: true,
		RequiredAcks:           kafka.RequireAll,
		Compression:            kafkaGoCodecs[codec],
		BatchSize:              100,
		BatchTimeout:           20 * time.Millisecond,
		// The Writer has no partition of a record's own, but a balancer that may look at what the record carries.
		Balancer: kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
			return int(message.WriterData.(record).partition)
		}),
		Completion: func(messages []kafka.Message, err error) {
			lock.Lock()
			defer lock.Unlock()
			for _, acked := range messages {
				if err == nil {
					acks = append(acks, checkOffset(acked.WriterData.(record), acked.Offset))
				}
			}
		},
	}
	messages := make([]kafka.Message, len(records))
	for i, r := range records {
		messages[i] = kafka.Message{Time: time.UnixMilli(r.timestamp), Key: r.key, Value: r.value, WriterData: r}
		for _, h := range r.headers {
			messages[i].Headers = append(messages[i].Headers, kafka.Header{Key: h.name, Value: h.value})
		}
	}
	if err := errors.Join(writer.WriteMessages(ctx, messages...), writer.Close()); err != nil {
		return err
	}
	return firstError(acks)
}

func (k *kafkaGo) consume(ctx context.Context, topic string, span span) ([]record, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{k.broker}, Topic: topic, Partition: int(span.partition), MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 500 * time.Millisecond,
	})
	defer reader.Close()
	if err := reader.SetOffset(span.from); err != nil {
		return nil, err
	}
	var records []record
	for int64(len(records)) < span.count {
		read, err := reader.ReadMessage(ctx)
		if err != nil {
			return records, err
		}
		r := record{partition: int32(read.Partition), offset: read.Offset, timestamp: read.Time.UnixMilli(), key: read.Key, value: read.Value}
		for _, h := range read.Headers {
			r.headers = append(r.headers, header{h.Key, h.Value})
		}
		records = append(records, r)
	}
	return records, nil
}

func firstError(all []error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}
