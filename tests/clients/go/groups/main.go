// A member of a group, by one of the Go clients. Its lines are those of ../../groups/rules.py.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type member struct {
	broker, group, topic, name, assignor string
	session, rebalance, heartbeat        time.Duration
	instance                             string
}

// run reads and commits until ctx ends, and then leaves.
var clients = map[string]func(m *member, ctx context.Context) error{
	"franz-go": runFranz,
	"kafka-go": runKafkaGo,
	"sarama":   runSarama,
}

func main() {
	if len(os.Args) != 11 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go-group-member CLIENT HOST:PORT GROUP TOPIC NAME ASSIGNOR SESSION_MS REBALANCE_MS HEARTBEAT_MS INSTANCE")
		os.Exit(2)
	}
	a := os.Args[2:]
	m := &member{a[0], a[1], a[2], a[3], a[4], milliseconds(a[5]), milliseconds(a[6]), milliseconds(a[7]), a[8]}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := clients[os.Args[1]](m, ctx); err != nil {
		m.say("FAILED", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
	m.say("LEFT")
}

func milliseconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return time.Duration(n) * time.Millisecond
}

// say writes a line at once: other processes write to the same pipe.
func (m *member) say(words ...any) {
	fmt.Print(m.name, " ", fmt.Sprintln(words...))
}

// sayPartitions says something of several partitions.
func sayPartitions[P int | int32](m *member, event string, partitions []P) {
	words := []any{event}
	for _, partition := range partitions {
		words = append(words, partition)
	}
	m.say(words...)
}
