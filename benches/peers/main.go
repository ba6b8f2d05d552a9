// The load of the benchmark: one client with one set of settings for all brokers. run.sh starts the brokers and calls it.
//
//	peers [FLAGS] ping ADDRESS                          waits up to a second for a broker
//	peers [FLAGS] round NAME ADDRESS WORKLOAD…          runs workloads one after the other, prints a line of JSON for each
//	peers [FLAGS] delete ADDRESS                        deletes the topics of all rounds
//	peers report FILE…                                  the table from such lines
//
// A WORKLOAD is produce-N or consume-N (N partitions; consume reads what the round's produce-N wrote), cold-N (consume when the kernel has
// none of it in memory), both-N (consume while it is produced), latency, rate-N (N records a second), commits-N (N groups), join-N (N members
// of one group), idle-N (N members) or connections-N. produce, consume, cold and both may end with xBYTES, the size of a record: produce-4x100.
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
	"github.com/twmb/franz-go/pkg/kversion"
)

const topicPrefix = "bench-"

type settings struct {
	duration    time.Duration
	recordBytes int
	maxBytes    int64
	// The broker's processes, for their CPU time and memory. 0: unknown.
	session int
	// Requests are no newer than Kafka 3.0's.
	old bool
}

// connect makes a client.
func (s settings) connect(address string, more ...kgo.Opt) (*kgo.Client, error) {
	options := append([]kgo.Opt{kgo.SeedBrokers(address)}, more...)
	if s.old {
		options = append(options, kgo.MaxVersions(kversion.V3_0_0()))
	}
	return kgo.NewClient(options...)
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
	// Of the broker and of this client, in cores.
	CPU       float64 `json:"cpu,omitempty"`
	ClientCPU float64 `json:"client_cpu,omitempty"`
	// Of the broker, for 10^9 bytes of records.
	CPUSecondsPerGB float64 `json:"cpu_s_per_gb,omitempty"`
	// The most that the broker's processes had in RAM together.
	PeakBytes int64 `json:"peak_bytes,omitempty"`
	// For each member, or each connection.
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
	flag.BoolVar(&s.old, "old", false, "sends requests no newer than Kafka 3.0's, for a broker whose answers to newer ones cannot be read")
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
		return ping(ctx, s, arguments[1])
	case len(arguments) >= 4 && arguments[0] == "round":
		return round(ctx, s, arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 2 && arguments[0] == "delete":
		return deleteTopics(ctx, s, arguments[1])
	case len(arguments) >= 2 && arguments[0] == "report":
		return report(os.Stdout, arguments[1:])
	}
	return fmt.Errorf("unknown arguments %q", arguments)
}

func ping(ctx context.Context, s settings, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	client, err := s.connect(address, kgo.RequestRetries(0))
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
		count, size, _ := strings.Cut(count, "x")
		n := 1
		b := &bench{settings: s, address: address, topic: prefix + workload, partitions: 1}
		var err error
		if count != "" {
			n, err = strconv.Atoi(count)
		}
		if size != "" && err == nil {
			b.recordBytes, err = strconv.Atoi(size)
		}
		if err != nil {
			return fmt.Errorf("workload %q: %w", workload, err)
		}
		measure := map[string]func(context.Context) error{
			"produce":     b.produce,
			"consume":     b.consume,
			"cold":        b.cold,
			"both":        b.both,
			"latency":     b.latency,
			"rate":        func(ctx context.Context) error { return b.rate(ctx, n) },
			"commits":     func(ctx context.Context) error { return b.commits(ctx, n) },
			"join":        func(ctx context.Context) error { return b.join(ctx, n) },
			"idle":        func(ctx context.Context) error { return b.idle(ctx, n) },
			"connections": func(ctx context.Context) error { return b.connections(n) },
		}[kind]
		if measure == nil {
			return fmt.Errorf("unknown workload %q", workload)
		}
		switch kind {
		case "produce", "consume", "cold", "both":
			b.partitions = n
		case "commits":
			b.partitions = committedPartitions
		case "join", "idle":
			b.partitions = joinPartitions
		}
		switch kind {
		case "consume", "cold":
			b.topic = prefix + strings.Replace(workload, kind, "produce", 1)
		default:
			if b.topicID, err = createTopic(ctx, s, address, b.topic, b.partitions); err != nil {
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

func createTopic(ctx context.Context, s settings, address, topic string, partitions int) (kadm.TopicID, error) {
	client, err := s.connect(address)
	if err != nil {
		return kadm.TopicID{}, err
	}
	defer client.Close()
	created, err := kadm.NewClient(client).CreateTopic(ctx, int32(partitions), 1, nil, topic)
	return created.ID, err
}

func deleteTopics(ctx context.Context, s settings, address string) error {
	client, err := s.connect(address)
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
