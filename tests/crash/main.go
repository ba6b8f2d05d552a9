// Crash tests of a broker: it is killed, paused or replaced under load, and no acked record may be lost, moved or stored twice.
//
//	crash restart  ADDRESS COMMAND
//	crash torture  ADDRESS COMMAND
//	crash memory   ADDRESS COMMAND
//	crash takeover ADDRESS COMMAND ADDRESS COMMAND
//	crash standby  ADDRESS COMMAND ADDRESS COMMAND
//
// A COMMAND is a line for the shell that starts a broker in the foreground; ADDRESS is where it then serves. README.md has the scenarios.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// What all scenarios share.
type settings struct {
	records    int
	partitions int
	kills      int
	within     time.Duration
	logs       string
	seed       uint64
	duration   time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.records, "records", 50_000, "records of a load")
	flag.IntVar(&s.partitions, "partitions", 4, "partitions of the topic")
	flag.IntVar(&s.kills, "kills", 2, "how often the broker is killed (restart, torture)")
	flag.DurationVar(&s.within, "within", 0, "a kill must be followed by an ack in this time (default 60s; standby: 15s)")
	flag.StringVar(&s.logs, "logs", ".", "folder for what the brokers print")
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "of the moments of the kills (torture)")
	flag.DurationVar(&s.duration, "duration", 10*time.Minute, "how long the load lasts (memory)")
	timeout := flag.Duration("timeout", 5*time.Minute, "a scenario that takes longer has failed")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: crash [FLAGS] restart|torture|memory ADDRESS COMMAND | takeover|standby ADDRESS COMMAND ADDRESS COMMAND")
		flag.PrintDefaults()
	}
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	// An interrupted run must not leave its brokers behind, a paused one least of all.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	started := time.Now()
	err := run(ctx, s, flag.Args())
	fmt.Printf("%.1f s\n", time.Since(started).Seconds())
	if err != nil {
		fmt.Printf("FAIL %s: %v\n0 passed, 1 failed\n", flag.Arg(0), err)
		os.Exit(1)
	}
	fmt.Printf("ok   %s\n1 passed, 0 failed\n", flag.Arg(0))
}

func run(ctx context.Context, s settings, arguments []string) error {
	var brokers []*broker
	for i := 1; i+1 < len(arguments); i += 2 {
		brokers = append(brokers, newBroker(arguments[i], arguments[i+1], fmt.Sprintf("%s/broker-%d.log", s.logs, i/2+1)))
	}
	defer func() {
		for _, b := range brokers {
			b.kill()
		}
	}()
	orElse := func(within time.Duration) {
		if s.within == 0 {
			s.within = within
		}
	}
	switch {
	case len(arguments) == 3 && arguments[0] == "restart":
		orElse(time.Minute)
		return restart(ctx, s, brokers[0])
	case len(arguments) == 3 && arguments[0] == "torture":
		orElse(time.Minute)
		return torture(ctx, s, brokers[0])
	case len(arguments) == 3 && arguments[0] == "memory":
		return memory(ctx, s, brokers[0])
	case len(arguments) == 5 && arguments[0] == "takeover":
		return takeover(ctx, s, brokers[0], brokers[1])
	case len(arguments) == 5 && arguments[0] == "standby":
		orElse(15 * time.Second)
		return standby(ctx, s, brokers[0], brokers[1])
	}
	flag.Usage()
	os.Exit(2)
	return nil
}

// restart kills the broker in the middle of a load, starts it again, and so on; the load never stops.
func restart(ctx context.Context, s settings, b *broker) error {
	if err := b.start(ctx); err != nil {
		return err
	}
	topic, err := createTopic(ctx, b.address, s.partitions)
	if err != nil {
		return err
	}
	load, err := startLoad(ctx, "load", topic, s, b.address)
	if err != nil {
		return err
	}
	for n := 1; n <= s.kills; n++ {
		if err := load.reach(ctx, s.records*n/(s.kills+1)); err != nil {
			return err
		}
		b.kill()
		killed, acked := time.Now(), load.acked()
		if err := b.start(ctx); err != nil {
			return err
		}
		serving := time.Since(killed)
		if err := load.reach(ctx, acked+1); err != nil {
			return err
		}
		if err := say(killed, s.within, "killed with %d of %d records acked; it serves after %.1f s, the next ack came", acked, s.records, serving.Seconds()); err != nil {
			return err
		}
	}
	if err := load.end(ctx); err != nil {
		return err
	}
	return verify(ctx, b.address, topic, s.partitions, load)
}

// standby lets a second broker wait beside the first, and kills the first under load.
func standby(ctx context.Context, s settings, first, second *broker) error {
	if err := first.start(ctx); err != nil {
		return err
	}
	topic, err := createTopic(ctx, first.address, s.partitions)
	if err != nil {
		return err
	}
	load, err := startLoad(ctx, "load", topic, s, first.address, second.address)
	if err != nil {
		return err
	}
	if err := second.spawn(); err != nil {
		return err
	}
	if err := load.reach(ctx, s.records/2); err != nil {
		return err
	}
	if second.listens() {
		return fmt.Errorf("the second broker serves beside the first")
	}
	if status, ended := second.ended(); ended {
		return fmt.Errorf("the second broker ended with status %d instead of waiting", status)
	}
	first.kill()
	killed, acked := time.Now(), load.acked()
	if err := load.reach(ctx, acked+1); err != nil {
		return err
	}
	if err := say(killed, s.within, "the first was killed with %d of %d records acked; the second's first ack came", acked, s.records); err != nil {
		return err
	}
	if err := load.end(ctx); err != nil {
		return err
	}
	return verify(ctx, second.address, topic, s.partitions, load)
}

// say prints what happened and how long it took since a moment, and is an error if that was too long.
func say(since time.Time, within time.Duration, format string, arguments ...any) error {
	took := time.Since(since)
	text := fmt.Sprintf(format, arguments...) + fmt.Sprintf(" after %.1f s", took.Seconds())
	if took > within {
		return fmt.Errorf("%s, that is more than %v", text, within)
	}
	fmt.Println(text)
	return nil
}
