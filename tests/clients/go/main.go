// The adapter of the Go clients: it does what `check.py` tells it on its standard input, with the client named on its command line,
// which speaks as one of the Kafka release LEVEL would if one is given.
//
// Every command is one line, and so is its answer, `ok` or `failed: REASON`:
//
//	create TOPIC PARTITIONS
//	produce TOPIC CODEC FILE               the records of FILE; every one must be acked at the offset that FILE gives it
//	consume TOPIC FILE PARTITION:FROM:COUNT…   COUNT records from offset FROM on, of each partition, written to FILE
//	delete TOPIC
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A client is one library, as its users would call it.
type client interface {
	create(ctx context.Context, topic string, partitions int) error
	produce(ctx context.Context, topic, codec string, records []record) error
	consume(ctx context.Context, topic string, span span) ([]record, error)
	delete(ctx context.Context, topic string) error
}

// A span is the part of a partition that is to be read.
type span struct {
	partition   int32
	from, count int64
}

const commandTimeout = 45 * time.Second

var clients = map[string]func(broker, level string) (client, error){
	"franz-go": newFranz,
	"kafka-go": newKafkaGo,
	"sarama":   newSarama,
}

func main() {
	if len(os.Args) < 3 || len(os.Args) > 4 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: adapter franz-go|kafka-go|sarama HOST:PORT [LEVEL]")
		os.Exit(2)
	}
	level := ""
	if len(os.Args) == 4 {
		level = os.Args[3]
	}
	client, err := clients[os.Args[1]](os.Args[2], level)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		if err := run(client, strings.Fields(commands.Text())); err != nil {
			fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", "; "))
		} else {
			fmt.Println("ok")
		}
	}
}

func run(client client, command []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	switch {
	case len(command) == 3 && command[0] == "create":
		partitions, err := strconv.Atoi(command[2])
		if err != nil {
			return err
		}
		return client.create(ctx, command[1], partitions)
	case len(command) == 4 && command[0] == "produce":
		records, err := readRecords(command[3])
		if err != nil {
			return err
		}
		return client.produce(ctx, command[1], command[2], records)
	case len(command) >= 4 && command[0] == "consume":
		return consume(ctx, client, command[1], command[2], command[3:])
	case len(command) == 2 && command[0] == "delete":
		return client.delete(ctx, command[1])
	}
	return fmt.Errorf("unknown command %q", command)
}

func consume(ctx context.Context, client client, topic, file string, spans []string) error {
	var all []record
	for _, text := range spans {
		var s span
		if _, err := fmt.Sscanf(text, "%d:%d:%d", &s.partition, &s.from, &s.count); err != nil {
			return fmt.Errorf("span %q: %w", text, err)
		}
		records, err := client.consume(ctx, topic, s)
		if err != nil {
			return fmt.Errorf("partition %d after %d of %d records: %w", s.partition, len(records), s.count, err)
		}
		all = append(all, records...)
	}
	return writeRecords(file, all)
}

// checkOffset compares the offset of an ack with the one that the record must get.
func checkOffset(r record, offset int64) error {
	if offset != r.offset {
		return fmt.Errorf("partition %d: record %d was acked at offset %d", r.partition, r.offset, offset)
	}
	return nil
}
