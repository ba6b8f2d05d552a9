package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	kelp "kelp/go-bindings"
)

// start serves on a port until the test ends.
func start(t testing.TB, storage kelp.Storage, properties ...string) (*kelp.Engine, int) {
	t.Helper()
	states := make(chan kelp.State, 8)
	engine, err := kelp.New(kelp.Config{IOThreads: 2, Properties: properties}, kelp.Host{
		Storage: storage,
		State:   func(state kelp.State, _ string) { states <- state },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	select {
	case state := <-states:
		if state != kelp.Serving {
			t.Fatalf("the engine is %v", state)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the engine does not serve")
	}
	port, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return engine, port
}

func TestWhatIsProducedIsFetchedAndKnownAfterARestart(t *testing.T) {
	storage := newMemory()
	engine, port := start(t, storage)
	c := connect(t, port)
	c.createTopic("t")
	for sequence := range int32(5) {
		batch := recordBatch([]byte{'a' + byte(sequence)}, 7, sequence)
		if offset := c.produce("t", batch); offset != int64(sequence) {
			t.Fatalf("batch %d has offset %d", sequence, offset)
		}
	}
	if err := engine.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	engine.Close()

	_, port = start(t, storage)
	c = connect(t, port)
	retry := recordBatch([]byte{'d'}, 7, 3)
	if offset := c.produce("t", retry); offset != 3 {
		t.Fatalf("the retry has offset %d", offset)
	}
	fetched := c.fetch("t", 3)
	// All but what a broker stamps: base offset and leader epoch.
	if want := retry[16:]; !bytes.Equal(fetched[16:len(retry)], want) {
		t.Fatalf("fetched %x, not %x", fetched[16:], want)
	}
	if len(fetched) != 2*len(retry) {
		t.Fatalf("%d bytes of two batches of %d", len(fetched), len(retry))
	}
}

func TestAGroupAndItsOffsetsAreKnownAfterARestart(t *testing.T) {
	storage := newMemory()
	engine, port := start(t, storage, "group.initial.rebalance.delay.ms=0")
	c := connect(t, port)
	c.createTopic("t")
	m := c.join("g")
	c.commit(m, "t", 7, "seven")
	for n := range int64(2 * atOnce) {
		c.commit(member{group: fmt.Sprint("simple-", n%5), generation: -1}, "t", n, "")
	}
	if err := engine.Stop(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	engine.Close()

	_, port = start(t, storage)
	c = connect(t, port)
	c.heartbeat(m)
	if offset, metadata := c.committed("g", "t"); offset != 7 || metadata != "seven" {
		t.Fatalf("committed is %d with %q", offset, metadata)
	}
	for n := range int64(5) {
		if offset, _ := c.committed(fmt.Sprint("simple-", n), "t"); offset != 2*atOnce-5+n {
			t.Fatalf("committed by simple-%d is %d", n, offset)
		}
	}
}

// failing is a storage that keeps offsets only as long as it is told to.
type failing struct {
	*memory
	fails atomic.Bool
}

func (f *failing) CommitOffsets(ctx context.Context, log string, offsets []kelp.Offset) error {
	if f.fails.Load() {
		return errors.New("the disk is full")
	}
	return f.memory.CommitOffsets(ctx, log, offsets)
}

func TestAnOffsetThatIsNotStoredIsNotAcknowledged(t *testing.T) {
	storage := &failing{memory: newMemory()}
	_, port := start(t, storage)
	c := connect(t, port)
	c.createTopic("t")
	none := member{group: "g", generation: -1}
	c.commit(none, "t", 1, "")
	storage.fails.Store(true)
	if code := c.tryCommit(none, "t", 2, ""); code != notCoordinator {
		t.Fatalf("OffsetCommit answers %d", code)
	}
	storage.fails.Store(false)
	if offset, _ := c.committed("g", "t"); offset != 1 {
		t.Fatalf("committed is %d", offset)
	}
	c.commit(none, "t", 3, "")
}

// A vectored write to a connection that the client has reset raises SIGPIPE, which ends a Go
// process when it comes on a thread that is not Go's.
func TestAClientThatResetsDoesNotEndTheProcess(t *testing.T) {
	_, port := start(t, newMemory())
	c := connect(t, port)
	c.createTopic("t")
	large := recordBatch(bytes.Repeat([]byte{'x'}, 900_000), -1, -1)
	for range 16 {
		c.produce("t", large)
	}
	for range 20 {
		// The client says that it sends nothing more, then it resets, while the broker waits for
		// room to write: the broker learns of it by its next write.
		rude := connect(t, port)
		for range 3 {
			rude.sendFetch("t", 0)
		}
		if _, err := io.ReadFull(rude.conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		rude.conn.CloseWrite()
		rude.conn.SetLinger(0)
		rude.conn.Close()
	}
	c.fetch("t", 15)
}

// The failures of Kafka servers that users reported, as scripts.
func TestTheCasesPass(t *testing.T) {
	if testing.Short() {
		t.Skip("they take some seconds")
	}
	_, port := start(t, newMemory())
	folder, err := filepath.Abs("../../../tests/cases")
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{"01", "02", "03", "04", "06", "09", "11", "12", "13", "14", "16", "26"} {
		scripts, _ := filepath.Glob(filepath.Join(folder, number+"-*.py"))
		if len(scripts) != 1 {
			t.Fatalf("case %s is not there", number)
		}
		t.Run(filepath.Base(scripts[0]), func(t *testing.T) {
			command := exec.Command("python3", scripts[0], fmt.Sprintf("127.0.0.1:%d", port))
			command.Env = append(os.Environ(), "KW_STRICT=1")
			if output, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
		})
	}
}

// measuringPort is set in a process that is this test's client.
const measuringPort = "KELP_TEST_MEASURE_PORT"

// How long a client waits for an answer that needs no host, while all of Go's processors are busy
// and others' records go through Go: were host code called on the threads that serve sockets, they
// would stand still for tens of milliseconds each time.
func TestIOIsNotHeldUpByABusyGo(t *testing.T) {
	if port := os.Getenv(measuringPort); port != "" {
		number, _ := strconv.Atoi(port)
		measure(t, number)
		return
	}
	_, port := start(t, newMemory())
	connect(t, port).createTopic("t")
	command := func() *exec.Cmd {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", measuringPort, port))
		return command
	}
	for _, busy := range []bool{false, true} {
		var stop atomic.Bool
		for range runtime.GOMAXPROCS(0) {
			go func() {
				for busy && !stop.Load() {
				}
			}()
		}
		output, err := command().CombinedOutput()
		stop.Store(true)
		if err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		for line := range strings.Lines(string(output)) {
			if latency, found := strings.CutPrefix(line, "latency: "); found {
				t.Logf("Go busy: %v, ApiVersions round trip %s", busy, strings.TrimSpace(latency))
			}
		}
	}
}

// measure is a process of its own, so that its client is not one of the goroutines that wait for a
// processor.
func measure(t *testing.T, port int) {
	done := make(chan struct{})
	producing := connect(t, port)
	batch := recordBatch([]byte("load"), -1, -1)
	go func() {
		defer close(done)
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
			producing.produce("t", batch)
		}
	}()
	asking := connect(t, port)
	var took []time.Duration
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
		begin := time.Now()
		asking.apiVersions()
		took = append(took, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	<-done
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[len(took)*percent/100].Round(time.Microsecond) }
	fmt.Printf("latency: p50 %v, p90 %v, p99 %v, of %d\n", at(50), at(90), at(99), len(took))
}
