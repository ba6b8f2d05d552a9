package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

type franz struct {
	options []kgo.Opt
	admin   *kadm.Client
}

var franzCodecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func newFranz(broker, level string) (client, error) {
	options := []kgo.Opt{kgo.SeedBrokers(broker)}
	if level != "" {
		versions := kversion.FromString(level)
		if versions == nil {
			return nil, fmt.Errorf("kversion does not know %q", level)
		}
		options = append(options, kgo.MaxVersions(versions))
	}
	admin, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	return &franz{options, kadm.NewClient(admin)}, nil
}

// client has what all clients have, and more.
func (f *franz) client(more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(slices.Clone(f.options), more...)...)
}

func (f *franz) create(ctx context.Context, topic string, partitions int) error {
	_, err := f.admin.CreateTopic(ctx, int32(partitions), -1, nil, topic)
	return err
}

func (f *franz) delete(ctx context.Context, topic string) error {
	_, err := f.admin.DeleteTopic(ctx, topic)
	return err
}

// produce uses the producer's defaults: idempotent where the level has it, acks=all.
func (f *franz) produce(ctx context.Context, topic, codec string, records []record) error {
	producer, err := f.client(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(franzCodecs[codec]),
		kgo.ProducerBatchMaxBytes(32<<10),
		kgo.ProducerLinger(20*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer producer.Close()
	// The promises run one after the other.
	var first error
	for _, r := range records {
		sent := &kgo.Record{Topic: topic, Partition: r.partition, Timestamp: time.UnixMilli(r.timestamp), Key: r.key, Value: r.value}
		for _, h := range r.headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
		}
		producer.Produce(ctx, sent, func(acked *kgo.Record, err error) {
			if err == nil {
				err = checkOffset(r, acked.Offset)
			}
			if first == nil {
				first = err
			}
		})
	}
	if err := producer.Flush(ctx); err != nil {
		return err
	}
	return first
}

func (f *franz) consume(ctx context.Context, topic string, span span) ([]record, error) {
	from := map[string]map[int32]kgo.Offset{topic: {span.partition: kgo.NewOffset().At(span.from)}}
	consumer, err := f.client(kgo.ConsumePartitions(from))
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var records []record
	for int64(len(records)) < span.count {
		fetches := consumer.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			return records, fmt.Errorf("fetch: %w", failed.Err)
		}
		fetches.EachRecord(func(read *kgo.Record) {
			r := record{partition: read.Partition, offset: read.Offset, timestamp: milliseconds(read.Timestamp), key: read.Key, value: read.Value}
			for _, h := range read.Headers {
				r.headers = append(r.headers, header{h.Key, h.Value})
			}
			records = append(records, r)
		})
	}
	return records, nil
}
