package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verify reads the topic back: its offsets are dense, it has every record of every load where it was acked, in the order in which its producer
// sent it, and nothing else. Only a record of a plain load may be there a second time, behind the first.
func verify(ctx context.Context, address, topic string, partitions int, loads ...*load) error {
	byName, total := map[string]*load{}, 0
	for _, l := range loads {
		byName[l.name] = l
		total += l.records
	}
	seen, found, repeated := map[string]map[int]place{}, map[string]int{}, 0
	for partition := range int32(partitions) {
		records, err := readAll(ctx, address, topic, partition)
		if err != nil {
			return fmt.Errorf("reading partition %d: %w", partition, err)
		}
		last := map[string]int{}
		for i, record := range records {
			here := place{partition, int64(i)}
			if record.Offset != here.offset {
				return fmt.Errorf("partition %d goes on at offset %d where it should have %d", partition, record.Offset, here.offset)
			}
			name, number, err := identify(byName, record)
			if err != nil {
				return err
			}
			l := byName[name]
			if seen[name] == nil {
				seen[name] = map[int]place{}
			}
			if l.acks[number] == here {
				found[name]++
			} else if !l.plain {
				return fmt.Errorf("record %d of %s was acked at %v and is at %v", number, name, l.acks[number], here)
			}
			previous, some := last[name]
			switch there, twice := seen[name][number]; {
			case twice && l.plain:
				repeated++
			case twice:
				return fmt.Errorf("record %d of %s is stored twice, at %v and %v", number, name, there, here)
			case some && number < previous:
				return fmt.Errorf("record %d of %s, at %v, is stored behind record %d", number, name, here, previous)
			default:
				seen[name][number], last[name] = here, number
			}
		}
	}
	for name, l := range byName {
		if found[name] != l.records {
			return fmt.Errorf("%d of %d acked records of %s are lost", l.records-found[name], l.records, name)
		}
	}
	if repeated > 0 {
		fmt.Printf("%d records of producers that are not idempotent are there again\n", repeated)
	}
	fmt.Printf("all %d acked records are there, where they were acked\n", total)
	return nil
}

// identify finds out which record this is by its value, all of which must be right.
func identify(loads map[string]*load, record *kgo.Record) (name string, number int, err error) {
	fmt.Sscanf(string(record.Value), "%s %d ", &name, &number)
	l := loads[name]
	if l == nil || number < 0 || number >= l.records || string(l.value(number)) != string(record.Value) {
		return "", 0, fmt.Errorf("the record at %d of partition %d was never sent, or was refused: %.40q", record.Offset, record.Partition, record.Value)
	}
	return name, number, nil
}

func readAll(ctx context.Context, address, topic string, partition int32) ([]*kgo.Record, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	end, some := ends.Lookup(topic, partition)
	if !some || end.Err != nil {
		return nil, fmt.Errorf("its end: %v", end.Err)
	}
	var records []*kgo.Record
	for int64(len(records)) < end.Offset {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("after %d records: %w", len(records), err)
		}
		records = append(records, fetches.Records()...)
	}
	return records, nil
}
