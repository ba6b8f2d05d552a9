package filerstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"kelp/go-bindings"
	"kelp/go-bindings/weed/internal/weedtest"
)

// A fault is what becomes of calls to the filer and the volume server.
type fault int32

const (
	none    fault = iota
	refuses       // No connection is made, and those there were break.
	slows         // Each answer takes 50 ms more.
	hangs         // No answer comes.
	loses         // Now and then what was asked is done, and the connection breaks before the answer.
)

func (f fault) String() string {
	return []string{"none", "refuses", "slows", "hangs", "loses"}[f]
}

// A link is the way to a SeaweedFS, with faults on it.
type link struct {
	filer   string
	fault   atomic.Int32
	answers atomic.Int32
	met     atomic.Int32  // How often the fault was met.
	healed  chan struct{} // Closed when the fault is over.
	mutex   sync.Mutex
}

var errInjected = errors.New("the test broke the connection")

func (l *link) set(f fault) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.healed != nil {
		close(l.healed)
	}
	l.healed = make(chan struct{})
	l.met.Store(0)
	l.fault.Store(int32(f))
}

// pass does what the fault asks for before an answer is given on.
func (l *link) pass(ctx context.Context) error {
	l.mutex.Lock()
	f, healed := fault(l.fault.Load()), l.healed
	l.mutex.Unlock()
	switch f {
	case refuses:
	case slows:
		l.met.Add(1)
		sleep(ctx, 50*time.Millisecond)
		return nil
	case hangs:
		l.met.Add(1)
		select {
		case <-healed:
		case <-ctx.Done():
		}
	case loses:
		// So seldom that a new connection comes into use before.
		if l.answers.Add(1)%20 != 0 {
			return nil
		}
	default:
		return nil
	}
	l.met.Add(1)
	return errInjected
}

// Do sends a request to a volume server.
func (l *link) Do(request *http.Request) (*http.Response, error) {
	if fault(l.fault.Load()) == refuses {
		return nil, l.pass(request.Context())
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if err := l.pass(request.Context()); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// faulty has the connections to the filer go over the link.
type faulty struct {
	credentials.TransportCredentials
	link *link
}

func (f faulty) Clone() credentials.TransportCredentials { return f }

func (f faulty) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := f.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil || authority != f.link.filer {
		return conn, info, err
	}
	if fault(f.link.fault.Load()) == refuses {
		return nil, nil, f.link.pass(ctx)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &faultyConn{conn, f.link, ctx, cancel}, info, nil
}

type faultyConn struct {
	net.Conn
	link   *link
	ctx    context.Context
	cancel context.CancelFunc
}

func (c *faultyConn) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	if err == nil {
		err = c.link.pass(c.ctx)
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (c *faultyConn) Close() error {
	c.cancel()
	return c.Conn.Close()
}

// producer is an idempotent one, which sends a batch again until it is acknowledged.
type producer struct {
	id      int64
	acked   atomic.Int32
	refused atomic.Int32
	offsets []int64 // Of the batches, in their order.
}

// Kafka's codes that tell a client to try again.
const (
	requestTimedOut   = 7
	kafkaStorageError = 56
)

func (p *producer) run(port int, stop <-chan struct{}) error {
	client, err := dialKafka(port)
	if err != nil {
		return err
	}
	defer client.Close()
	for sequence := int32(0); ; {
		select {
		case <-stop:
			return nil
		default:
		}
		offset, code, err := client.produce(p.id, sequence, p.value(sequence))
		switch {
		case err != nil:
			return err
		case code == 0:
			p.offsets = append(p.offsets, offset)
			p.acked.Add(1)
			sequence++
		case code == requestTimedOut || code == kafkaStorageError:
			p.refused.Add(1)
		default:
			return fmt.Errorf("batch %d of producer %d is refused with %d", sequence, p.id, code)
		}
	}
}

// value is sometimes one that goes to a volume server.
func (p *producer) value(sequence int32) []byte {
	text := fmt.Appendf(nil, "%d %d ", p.id, sequence)
	return append(text, bytes.Repeat([]byte("."), int(sequence%2)*10_000)...)
}

func TestABrokerRidesOutWhateverItsFilerDoes(t *testing.T) {
	s := weedtest.Own(t, "")
	link := &link{filer: fmt.Sprintf("127.0.0.1:%d", s.Ports[5])}
	link.set(none)
	objects := openOn(t, s, func(options *Options) {
		options.DialOption = grpc.WithTransportCredentials(faulty{insecure.NewCredentials(), link})
		options.HTTP = link
		options.Timeout = time.Second
	})
	var warnings atomic.Int32
	serving := make(chan struct{})
	engine, err := kelp.New(kelp.Config{}, kelp.Host{
		Objects: objects,
		Log: func(level kelp.Level, text string) {
			t.Log(level, text)
			if level == kelp.Warn && (strings.Contains(text, errInjected.Error()) || strings.Contains(text, "deadline")) {
				warnings.Add(1)
			}
		},
		State: func(state kelp.State, detail string) {
			if state == kelp.Serving {
				close(serving)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	<-serving
	port, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	createTopic(t, port)

	producers := []*producer{{id: 1}, {id: 2}, {id: 3}}
	stop, failed := make(chan struct{}), make(chan error, len(producers))
	for _, p := range producers {
		go func() { failed <- p.run(port, stop) }()
	}
	// until waits for each producer, as long as none has failed.
	until := func(what string, done func(*producer) bool) {
		t.Helper()
		late := time.After(time.Minute)
		for _, p := range producers {
			for !done(p) {
				select {
				case err := <-failed:
					t.Fatalf("%s: a producer ended: %v", what, err)
				case <-late:
					t.Fatalf("%s: producer %d stands still with %d batches acknowledged", what, p.id, p.acked.Load())
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
	}
	progress := func(what string) {
		t.Helper()
		before := map[*producer]int32{}
		for _, p := range producers {
			before[p] = p.acked.Load()
		}
		until(what, func(p *producer) bool { return p.acked.Load() >= before[p]+10 })
	}
	progress("at first")
	for _, f := range []fault{refuses, slows, hangs, loses} {
		refused := map[*producer]int32{}
		for _, p := range producers {
			refused[p] = p.refused.Load()
		}
		began := time.Now()
		link.set(f)
		if f == refuses || f == hangs {
			until(f.String(), func(p *producer) bool { return p.refused.Load() > refused[p] })
		} else {
			progress(f.String())
			until(f.String(), func(*producer) bool { return link.met.Load() >= 10 })
		}
		met := link.met.Load()
		link.set(none)
		progress("after " + f.String())
		t.Logf("%s: met %d times, over after %s", f, met, time.Since(began).Round(time.Millisecond))
		if met == 0 {
			t.Errorf("%s: nobody met it", f)
		}
	}
	close(stop)
	for range producers {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	checkStored(t, port, producers)
	if warnings.Load() == 0 {
		t.Error("the log does not say what went wrong")
	}
}

// checkStored reads the topic: each producer's batches are there once, in order, where they were acknowledged.
func checkStored(t *testing.T, port int, producers []*producer) {
	t.Helper()
	client, err := dialKafka(port)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	byID := map[int64]*producer{}
	total := 0
	for _, p := range producers {
		byID[p.id] = p
		total += len(p.offsets)
	}
	next := map[int64]int{}
	for offset := 0; offset < total; {
		batches, err := client.fetch(int64(offset))
		if err != nil {
			t.Fatal(err)
		}
		for ; len(batches) > 0; offset++ {
			length := 12 + binary.BigEndian.Uint32(batches[8:])
			id, sequence := int64(binary.BigEndian.Uint64(batches[43:])), int(binary.BigEndian.Uint32(batches[53:]))
			p := byID[id]
			if p == nil || sequence != next[id] || sequence >= len(p.offsets) || p.offsets[sequence] != int64(offset) {
				t.Fatalf("at offset %d is batch %d of producer %d", offset, sequence, id)
			}
			if !bytes.Contains(batches[:length], p.value(int32(sequence))) {
				t.Fatalf("the batch at offset %d is another one", offset)
			}
			next[id]++
			batches = batches[length:]
		}
	}
	t.Logf("%d batches acknowledged, all there once", total)
}

// kafka speaks one version of each API, to partition 0 of one topic.
type kafka struct{ net.Conn }

const topic = "clicks"

func dialKafka(port int) (*kafka, error) {
	conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	return &kafka{conn}, err
}

func (k *kafka) ask(key, version uint16, body []byte) ([]byte, error) {
	k.SetDeadline(time.Now().Add(time.Minute))
	frame := binary.BigEndian.AppendUint32(nil, uint32(10+len(body)))
	frame = binary.BigEndian.AppendUint16(frame, key)
	frame = binary.BigEndian.AppendUint16(frame, version)
	frame = append(frame, 0, 0, 0, 7, 0xff, 0xff) // Correlation id, no client id.
	if _, err := k.Write(append(frame, body...)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(k, head[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	_, err := io.ReadFull(k, answer)
	return answer, err
}

func createTopic(t *testing.T, port int) {
	t.Helper()
	client, err := dialKafka(port)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	body := append(named([]byte{0, 0, 0, 1}), 0, 0, 0, 1, 0, 1) // One partition, one replica.
	body = append(body, 0, 0, 0, 0, 0, 0, 0, 0)                 // No assignments, no configs.
	answer, err := client.ask(19, 0, binary.BigEndian.AppendUint32(body, 30_000))
	if err != nil || binary.BigEndian.Uint16(answer[len(answer)-2:]) != 0 {
		t.Fatalf("CreateTopics answers %x, error %v", answer, err)
	}
}

// produce appends a batch with one record.
func (k *kafka) produce(id int64, sequence int32, value []byte) (offset int64, code uint16, err error) {
	batch := recordBatch(id, sequence, value)
	body := []byte{0xff, 0xff, 0xff, 0xff} // No transaction, acks=all.
	body = binary.BigEndian.AppendUint32(body, 1500)
	body = append(named(append(body, 0, 0, 0, 1)), 0, 0, 0, 1, 0, 0, 0, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(len(batch)))
	answer, err := k.ask(0, 3, append(body, batch...))
	if err != nil {
		return 0, 0, err
	}
	answer = answer[4+2+len(topic)+4+4:]
	return int64(binary.BigEndian.Uint64(answer[2:])), binary.BigEndian.Uint16(answer), nil
}

// fetch reads batches from an offset on.
func (k *kafka) fetch(offset int64) ([]byte, error) {
	body := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 100, 0, 0, 0, 1, 0, 0x10, 0, 0, 0} // No replica, 100 ms for a byte, 1 MiB.
	body = append(named(append(body, 0, 0, 0, 1)), 0, 0, 0, 1, 0, 0, 0, 0)
	body = append(binary.BigEndian.AppendUint64(body, uint64(offset)), 0, 0x10, 0, 0)
	answer, err := k.ask(1, 4, body)
	if err != nil {
		return nil, err
	}
	answer = answer[8+2+len(topic)+4+4:]
	if code := binary.BigEndian.Uint16(answer); code != 0 {
		return nil, fmt.Errorf("Fetch answers %d", code)
	}
	return answer[2+8+8+4+4:], nil
}

func named(to []byte) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(topic))), topic...)
}

// recordBatch is a batch (magic 2) of one record without a key.
func recordBatch(id int64, sequence int32, value []byte) []byte {
	record := []byte{0, 0, 0, 1} // Attributes, two deltas, no key.
	record = binary.AppendVarint(record, int64(len(value)))
	record = append(append(record, value...), 0)
	checked := make([]byte, 6)
	checked = binary.BigEndian.AppendUint64(checked, 1000)
	checked = binary.BigEndian.AppendUint64(checked, 1000)
	checked = binary.BigEndian.AppendUint64(checked, uint64(id))
	checked = append(checked, 0, 0)
	checked = binary.BigEndian.AppendUint32(checked, uint32(sequence))
	checked = append(checked, 0, 0, 0, 1)
	checked = append(binary.AppendVarint(checked, int64(len(record))), record...)
	batch := make([]byte, 8)
	batch = binary.BigEndian.AppendUint32(batch, uint32(9+len(checked)))
	batch = append(batch, 0xff, 0xff, 0xff, 0xff, 2)
	batch = binary.BigEndian.AppendUint32(batch, crc32.Checksum(checked, crc32.MakeTable(crc32.Castagnoli)))
	return append(batch, checked...)
}
