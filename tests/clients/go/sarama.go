package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct {
	brokers []string
	version sarama.KafkaVersion
}

var saramaCodecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func newSarama(broker, level string) (client, error) {
	version, err := sarama.MaxVersion, error(nil)
	if level != "" {
		version, err = sarama.ParseKafkaVersion(level)
	}
	return &saramaClient{[]string{broker}, version}, err
}

func (s *saramaClient) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = s.version
	config.Consumer.MaxWaitTime = 100 * time.Millisecond // to close a consumer takes as long
	return config
}

func (s *saramaClient) create(_ context.Context, topic string, partitions int) error {
	return s.withAdmin(func(admin sarama.ClusterAdmin) error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}, false)
	})
}

func (s *saramaClient) delete(_ context.Context, topic string) error {
	return s.withAdmin(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

// withAdmin makes an admin for one command: at old levels there is none.
func (s *saramaClient) withAdmin(do func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin(s.brokers, s.config())
	if err != nil {
		return err
	}
	return errors.Join(do(admin), admin.Close())
}

func (s *saramaClient) produce(ctx context.Context, topic, codec string, records []record) error {
	config := s.config()
	config.Producer.Idempotent = s.version.IsAtLeast(sarama.V0_11_0_0)
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1 // an idempotent producer demands it
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Compression = saramaCodecs[codec]
	config.Producer.Flush.Messages = 100
	config.Producer.Flush.MaxMessages = 200
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	config.Producer.Return.Successes = true
	producer, err := sarama.NewAsyncProducer(s.brokers, config)
	if err != nil {
		return err
	}
	go func() {
		for i := range records {
			producer.Input() <- saramaMessage(topic, &records[i])
		}
	}()
	var first error
	for range records {
		select {
		case acked := <-producer.Successes():
			err = checkOffset(*acked.Metadata.(*record), acked.Offset)
		case failed := <-producer.Errors():
			err = failed.Err
		case <-ctx.Done():
			return ctx.Err() // the producer may not be able to close
		}
		if first == nil {
			first = err
		}
	}
	return errors.Join(first, producer.Close())
}

func saramaMessage(topic string, r *record) *sarama.ProducerMessage {
	message := &sarama.ProducerMessage{Topic: topic, Partition: r.partition, Timestamp: time.UnixMilli(r.timestamp), Metadata: r}
	if r.key != nil {
		message.Key = sarama.ByteEncoder(r.key)
	}
	if r.value != nil {
		message.Value = sarama.ByteEncoder(r.value)
	}
	for _, h := range r.headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(h.name), Value: h.value})
	}
	return message
}

func (s *saramaClient) consume(ctx context.Context, topic string, span span) ([]record, error) {
	config := s.config()
	config.Consumer.Return.Errors = true
	consumer, err := sarama.NewConsumer(s.brokers, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, span.partition, span.from)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	var records []record
	for int64(len(records)) < span.count {
		select {
		case read, open := <-partition.Messages():
			if !open {
				return records, fmt.Errorf("the consumer of the partition ended")
			}
			r := record{partition: read.Partition, offset: read.Offset, timestamp: milliseconds(read.Timestamp), key: read.Key, value: read.Value}
			for _, h := range read.Headers {
				r.headers = append(r.headers, header{string(h.Key), h.Value})
			}
			records = append(records, r)
		case failed := <-partition.Errors():
			return records, failed
		case <-ctx.Done():
			return records, ctx.Err()
		}
	}
	return records, nil
}
