// The load of the benchmark: one client with one set of settings for all brokers. run.sh starts the brokers and calls it.
//
//	peers ping ADDRESS                                  waits up to a second for a broker
//	peers [FLAGS] round NAME ADDRESS WORKLOAD…          runs workloads one after the other, prints a line of JSON for each
//	peers [FLAGS] delete ADDRESS                        deletes the topics of all rounds
//	peers report FILE…                                  the table from such lines
//
// A WORKLOAD is produce-N or consume-N (N partitions; consume reads what the round's produce-N wrote), latency, commits-N (N groups),
// join-N (N members of one group) or idle-N (N members).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topicPrefix = "bench-"

type settings struct {
	duration    time.Duration
	recordBytes int
	maxBytes    int64
	// The broker's processes, for their CPU time and memory. 0: unknown.
	session int
}

// A result is what a workload prints. Durations are milliseconds.
type result struct {
	Broker    string  `json:"broker"`
	Workload  string  `json:"workload"`
	Records   int64   `json:"records"`
	Bytes     int64   `json:"bytes"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"records_per_s"`
	Megabytes float64 `json:"mb_per_s"`
	P50       float64 `json:"p50_ms,omitempty"`
	P99       float64 `json:"p99_ms,omitempty"`
	P999      float64 `json:"p99_9_ms,omitempty"`
	// Of the broker, in cores.
	CPU         float64 `json:"cpu,omitempty"`
	MemberBytes float64 `json:"member_bytes,omitempty"`
	Errors      int64   `json:"errors"`
	Retries     int64   `json:"retries"`
	FirstError  string  `json:"first_error,omitempty"`
}

func main() {
	var s settings
	flag.DurationVar(&s.duration, "duration", 20*time.Second, "a workload ends after this time")
	flag.IntVar(&s.recordBytes, "record-bytes", 1024, "bytes of a record's value")
	flag.Int64Var(&s.maxBytes, "max-bytes", 2<<30, "a produce workload also ends after this many bytes, so that disks don't fill up")
	flag.IntVar(&s.session, "session", 0, "the session of the broker's processes, whose CPU time and memory are measured")
	flag.Parse()
	if err := run(s, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(s settings, arguments []string) error {
	ctx := context.Background()
	switch {
	case len(arguments) == 2 && arguments[0] == "ping":
		return ping(ctx, arguments[1])
	case len(arguments) >= 4 && arguments[0] == "round":
		return round(ctx, s, arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 2 && arguments[0] == "delete":
		return deleteTopics(ctx, arguments[1])
	case len(arguments) >= 2 && arguments[0] == "report":
		return report(os.Stdout, arguments[1:])
	}
	return fmt.Errorf("unknown arguments %q", arguments)
}

func ping(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

// round runs the workloads on topics of its own.
func round(ctx context.Context, s settings, name, address string, workloads []string) error {
	prefix := fmt.Sprintf("%s%d-", topicPrefix, time.Now().UnixMilli())
	for _, workload := range workloads {
		kind, count, _ := strings.Cut(workload, "-")
		n := 1
		if kind != "latency" {
			var err error
			if n, err = strconv.Atoi(count); err != nil {
				return fmt.Errorf("workload %q: %w", workload, err)
			}
		}
		b := &bench{settings: s, address: address, topic: prefix + workload, partitions: 1}
		measure := map[string]func(context.Context) error{
			"produce": b.produce,
			"consume": b.consume,
			"latency": b.latency,
			"commits": func(ctx context.Context) error { return b.commits(ctx, n) },
			"join":    func(ctx context.Context) error { return b.join(ctx, n) },
			"idle":    func(ctx context.Context) error { return b.idle(ctx, n) },
		}[kind]
		if measure == nil {
			return fmt.Errorf("unknown workload %q", workload)
		}
		switch kind {
		case "produce", "consume":
			b.partitions, b.topic = n, prefix+"produce-"+count
		case "commits":
			b.partitions = committedPartitions
		case "join", "idle":
			b.partitions = joinPartitions
		}
		if kind != "consume" {
			var err error
			if b.topicID, err = createTopic(ctx, address, b.topic, b.partitions); err != nil {
				return err
			}
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", workload, err)
		}
		b.result.Broker, b.result.Workload = name, workload
		if err := json.NewEncoder(os.Stdout).Encode(b.result); err != nil {
			return err
		}
	}
	return nil
}

func createTopic(ctx context.Context, address, topic string, partitions int) (kadm.TopicID, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return kadm.TopicID{}, err
	}
	defer client.Close()
	created, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
	return created.ID, err
}

func deleteTopics(ctx context.Context, address string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		return err
	}
	var old []string
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, topicPrefix) {
			old = append(old, name)
		}
	}
	if len(old) == 0 {
		return nil
	}
	answer, err := admin.DeleteTopics(ctx, old...)
	if err != nil {
		return err
	}
	return answer.Error()
}
