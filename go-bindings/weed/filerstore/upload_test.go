package filerstore

import (
	"bytes"
	"context"
	"io"
	"kelp/go-bindings/weed/internal/weedtest"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// doFunc is an HTTP client.
type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(request *http.Request) (*http.Response, error) { return f(request) }

// hasty answers for a volume server: it refuses a chunk before it has read it. Go's transport then
// returns while it is still writing the body.
func hasty(t *testing.T) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.ReadFull(conn, make([]byte, 50_000))
				io.WriteString(conn, "HTTP/1.1 409 Conflict\r\nContent-Length: 9\r\n\r\nread-only")
				io.Copy(io.Discard, conn)
			}()
		}
	}()
	return listener.Addr()
}

// stalled is a connection that takes some bytes and then hangs until it is released, as a thread
// does that the system does not run: so its request ends in the middle of a body.
type stalled struct {
	net.Conn
	room     int
	released chan struct{}
	late     *atomic.Int64 // How many bytes 'b' were written after the release.
}

func (s *stalled) Write(data []byte) (int, error) {
	if s.room -= len(data); s.room >= 0 {
		return s.Conn.Write(data)
	}
	select {
	case <-s.released:
		s.late.Add(int64(bytes.Count(data, []byte("b"))))
	default:
		<-s.released
	}
	return len(data), nil
}

// watched tells when the transport is done with a body.
type watched struct {
	io.Reader
	done func()
}

func (w watched) Close() error {
	w.done()
	return nil
}

func TestAPutDoesNotReadItsMemoryAfterItReturned(t *testing.T) {
	address := hasty(t)
	released := make(chan struct{})
	var late atomic.Int64
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address.String())
		// Without the methods of a TCP connection that go around Write.
		return struct{ net.Conn }{&stalled{conn, 100_000, released, &late}}, err
	}}}
	var bodies sync.WaitGroup
	o := open(t, func(options *Options) {
		options.HTTP = doFunc(func(request *http.Request) (*http.Response, error) {
			bodies.Add(1)
			request.Body = watched{request.Body, bodies.Done}
			return client.Do(request)
		})
	})
	memory := bytes.Repeat([]byte("a"), 8<<20)
	if created, err := o.PutNew(t.Context(), "segment/1/x", [][]byte{memory}); created || err == nil || !strings.Contains(err.Error(), "409") {
		t.Fatalf("created %t, error %v", created, err)
	}
	// From here on the memory is the engine's, which uses it for something else.
	for i := range memory {
		memory[i] = 'b'
	}
	close(released)
	bodies.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d bytes were sent of memory that had been given back", n)
	}
}

func TestAStalledVolumeServerEndsAPutInTimeAndUnknown(t *testing.T) {
	s := weedtest.Own(t, "")
	o := openOn(t, s)
	content := random(64 << 20)
	put(t, o, "segment/1/before", content) // Leaves file ids, so that the next put gets as far as the upload.
	s.Signal(syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	created, err := o.PutNew(ctx, "segment/1/x", [][]byte{content})
	took := time.Since(start)
	s.Signal(syscall.SIGCONT)
	if created || err == nil || took > 2*time.Second {
		t.Errorf("created %t, error %v, after %s", created, err, took)
	}
	put(t, o, "segment/1/x", content)
	if !bytes.Equal(get(t, o, "segment/1/x", 0, -1), content) {
		t.Error("other bytes came back")
	}
}

// File ids are assigned ahead; their volume may have become read-only or full since.
func TestAVolumeThatRefusesAChunkIsReplaced(t *testing.T) {
	var puts, refusals atomic.Int32
	var fail atomic.Bool
	inner := http.DefaultClient
	o := open(t, func(options *Options) {
		options.HTTP = doFunc(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPut {
				puts.Add(1)
				if fail.Load() && refusals.Add(1)%2 == 1 {
					return &http.Response{Status: "409 Conflict", StatusCode: 409, Body: io.NopCloser(strings.NewReader("read-only"))}, nil
				}
			}
			return inner.Do(request)
		})
	})
	put(t, o, "segment/1/first", random(2*hastyAtMost))
	path, _ := o.path("segment/1/x")
	before, err := o.ids.take(t.Context(), path, "kelp", 20_000, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	fail.Store(true)
	put(t, o, "segment/1/second", random(2*hastyAtMost))
	if puts.Load() != 3 {
		t.Errorf("%d uploads, want 1, a refused one and one more", puts.Load())
	}
	after, err := o.ids.take(t.Context(), path, "kelp", 20_000, time.Minute)
	if err != nil || after.batch == before.batch {
		t.Errorf("ids of the volume that refused are still used, error %v", err)
	}
}

func TestFileIDsAreUsedOnce(t *testing.T) {
	o := open(t)
	path, _ := o.path("segment/1/x")
	seen := map[string]bool{}
	for range 3 * batchIDs {
		id, err := o.ids.take(t.Context(), path, "kelp", 20_000, time.Minute)
		if err != nil || seen[id.name] {
			t.Fatalf("id %s, error %v", id.name, err)
		}
		seen[id.name] = true
	}
}

func TestCutTakesARangeOfParts(t *testing.T) {
	parts := [][]byte{[]byte("ab"), nil, []byte("cde"), []byte("f")}
	for offset := range 7 {
		for length := range 7 - offset {
			got := bytes.Join(cut(parts, offset, length), nil)
			if want := "abcdef"[offset : offset+length]; string(got) != want {
				t.Errorf("%d from %d: %q, want %q", length, offset, got, want)
			}
		}
	}
}
