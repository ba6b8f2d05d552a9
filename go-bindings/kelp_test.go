package kelp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// objects is a store of objects in memory.
type objects struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (o *objects) PutNew(_ context.Context, key string, parts [][]byte) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, exists := o.data[key]; exists {
		return false, nil
	}
	if o.data == nil {
		o.data = make(map[string][]byte)
	}
	o.data[key] = bytes.Join(parts, nil)
	return true, nil
}

func (o *objects) Get(_ context.Context, key string, offset, length int64, alloc func(int) []byte) ([]byte, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	data, found := o.data[key]
	data = data[min(offset, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	given := alloc(len(data))
	return given[:copy(given, data)], found, nil
}

func (o *objects) List(_ context.Context, prefix, after string, limit int) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var keys []string
	for key := range o.data {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(limit, len(keys))], nil
}

func (o *objects) Delete(_ context.Context, keys []string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		delete(o.data, key)
	}
	return nil
}

// start makes an engine that serves; it is closed when the test ends.
func start(t testing.TB, host Host, properties ...string) *Engine {
	t.Helper()
	states := make(chan State, 8)
	host.State = func(state State, detail string) { states <- state }
	host.Log = func(level Level, line string) { t.Log(level, line) }
	engine, err := New(Config{Properties: properties, IOThreads: 2}, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	select {
	case state := <-states:
		if state != Serving {
			t.Fatalf("the engine is %v", state)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the engine does not serve")
	}
	return engine
}

// apiVersions asks a broker which APIs it has, and gives the length of the answer.
func apiVersions(t testing.TB, conn net.Conn) int {
	t.Helper()
	// Length, API 18, version 0, correlation id 7, no client id.
	if _, err := conn.Write([]byte{0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	var head [10]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		t.Fatal(err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if id, code := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint16(head[8:]); id != 7 || code != 0 {
		t.Fatalf("correlation id %d, error code %d", id, code)
	}
	if _, err := io.CopyN(io.Discard, conn, int64(length)-6); err != nil {
		t.Fatal(err)
	}
	return int(length)
}

func dial(t testing.TB, port int) net.Conn {
	t.Helper()
	conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

func listen(t testing.TB) *net.TCPListener {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestAConnectionThatWasAcceptedIsServed(t *testing.T) {
	engine := start(t, Host{Objects: &objects{}})
	listener := listen(t)
	defer listener.Close()
	client := dial(t, listener.Addr().(*net.TCPAddr).Port)
	accepted, err := listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Serve(accepted); err != nil {
		t.Fatal(err)
	}
	apiVersions(t, client)

	// The engine closes what makes no sense, and Go has no descriptor that would keep it open.
	client.Write([]byte{0xff, 0xff, 0xff, 0xff})
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the client sees %v", err)
	}
}

func TestAListenerIsServed(t *testing.T) {
	engine := start(t, Host{Objects: &objects{}})
	listener := listen(t)
	port := listener.Addr().(*net.TCPAddr).Port
	if err := engine.ServeListener(listener); err != nil {
		t.Fatal(err)
	}
	apiVersions(t, dial(t, port))
	if _, err := listener.Accept(); err == nil {
		t.Fatal("Go still accepts")
	}
}

func TestListenGivesThePortAndStopEndsIt(t *testing.T) {
	engine := start(t, Host{Objects: &objects{}})
	port, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, port)
	apiVersions(t, client)
	if err := engine.Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the client sees %v", err)
	}
	if _, err := engine.Listen("127.0.0.1:0"); !errors.Is(err, ErrClosed) {
		t.Fatalf("a stopped engine says %v", err)
	}
}

func TestAClosedEngineTakesASocketAndClosesIt(t *testing.T) {
	engine := start(t, Host{Objects: &objects{}})
	listener := listen(t)
	defer listener.Close()
	client := dial(t, listener.Addr().(*net.TCPAddr).Port)
	accepted, err := listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	engine.Close()
	engine.Close()
	if err := engine.Serve(accepted); !errors.Is(err, ErrClosed) {
		t.Fatalf("a closed engine says %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("the client sees %v", err)
	}
}

func TestABadConfigurationSaysWhatIsWrong(t *testing.T) {
	for _, bad := range []struct {
		config Config
		host   Host
		says   string
	}{
		{Config{Properties: []string{"no.such.property=1"}}, Host{Objects: &objects{}}, "no.such.property"},
		{Config{Properties: []string{"node.id=one"}}, Host{Objects: &objects{}}, "node.id"},
		{Config{}, Host{}, "exactly one of storage and objects"},
		{Config{IOThreads: 1 << 20}, Host{Objects: &objects{}}, "threads"},
	} {
		_, err := New(bad.config, bad.host)
		if err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v is not refused for %q: %v", bad.config, bad.says, err)
		}
	}
}

// broken is a store that answers nothing but errors.
type broken struct{ objects }

func (b *broken) List(context.Context, string, string, int) ([]string, error) {
	return nil, os.ErrPermission
}

func TestTheTextOfAnErrorComesToTheLog(t *testing.T) {
	lines := make(chan string, 1000)
	engine, err := New(Config{}, Host{
		Objects: &broken{},
		Log:     func(_ Level, line string) { lines <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, os.ErrPermission.Error()) {
				return
			}
		case <-timeout:
			t.Fatal("no line says what is wrong")
		}
	}
}

func TestMetricsAreText(t *testing.T) {
	engine := start(t, Host{Objects: &objects{}})
	port, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	apiVersions(t, dial(t, port))
	text := engine.Metrics()
	for _, line := range []string{
		"kelp_host_operations ",
		"# TYPE kafka_network_requestmetrics_totaltimems histogram\n",
		"kafka_network_requestmetrics_requests_total{request=\"ApiVersions\",version=\"0\"} 1\n",
		"kafka_server_socket_server_metrics_connection_count 1\n",
		"kelp_state{state=\"serving\"} 1\n",
	} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("no line begins with %q in\n%s", line, text)
		}
	}
	engine.Close()
	if text := engine.Metrics(); text != "" {
		t.Errorf("a closed engine tells %s", text)
	}
}

func TestCloseWaitsForACallbackThatCallsTheEngine(t *testing.T) {
	engines := make(chan *Engine, 1)
	begun := make(chan struct{})
	called := make(chan error, 1)
	var once sync.Once
	engine, err := New(Config{}, Host{
		Objects: &objects{},
		State: func(State, string) {
			once.Do(func() {
				close(begun)
				engine := <-engines
				time.Sleep(50 * time.Millisecond) // so that Close comes first
				_, err := engine.Listen("127.0.0.1:0")
				called <- err
			})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	engines <- engine
	engine.Close()
	if err := <-called; !errors.Is(err, ErrClosed) {
		t.Fatalf("a closed engine says %v", err)
	}
}
