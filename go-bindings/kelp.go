// Package kelp is a Kafka broker inside a Go program: it serves Kafka clients on sockets that the
// program hands over, and keeps their topics and records in the program's own storage.
//
//	engine, err := kelp.New(kelp.Config{}, kelp.Host{Objects: objects})
//	port, err := engine.Listen("127.0.0.1:9092")
//	...
//	engine.Stop(10 * time.Second)
//	engine.Close()
//
// The storage is one of two: [Objects], a store of immutable objects on which Kelp keeps its log,
// or [Storage], a log of the program's own. Their methods are called on goroutines of their own,
// many at once, and may block.
//
// The package links libkelp statically; with the build tag dynamic it links the installed
// libkelp.so.
package kelp

/*
#include "bridge.h"
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/cgo"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// Config is how an engine is to run. The zero value has the defaults.
type Config struct {
	// Properties are Kafka's server properties, each NAME=VALUE. Of two for one name the later
	// counts; a name that Kelp does not have is an error.
	Properties []string
	// IOThreads serve the sockets. 0: one for each processor.
	IOThreads int
}

// Host is what the program gives. Exactly one of Objects and Storage is set.
type Host struct {
	Objects Objects
	Storage Storage
	// Log gets Kelp's log lines. It must return soon. nil: there are none.
	Log func(Level, string)
	// State is told when the engine's state changes, with a text on it; also before New has
	// returned. It must return soon, and must not call Stop or Close. nil: nobody is told.
	State func(State, string)
	// TopicsChanged is told when [Engine.Topics] may give something else: when the engine begins to
	// serve, and when topics, their settings, or those of the broker are changed. Several changes may
	// come as one call. It must return soon, and must not call Stop or Close. nil: nobody is told.
	TopicsChanged func()
}

// Level says how grave a log line is.
type Level int

const (
	Error Level = C.KELP_LOG_ERROR
	Warn  Level = C.KELP_LOG_WARN
	Info  Level = C.KELP_LOG_INFO
	Debug Level = C.KELP_LOG_DEBUG
	Trace Level = C.KELP_LOG_TRACE
)

func (l Level) String() string {
	names := [...]string{"level 0", "error", "warn", "info", "debug", "trace"}
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("level %d", int(l))
	}
	return names[l]
}

// State says whether the engine serves clients.
type State int

const (
	// Standby: another process has the data and is alive.
	Standby State = C.KELP_STATE_STANDBY
	// Serving: clients are served.
	Serving State = C.KELP_STATE_SERVING
	// Fenced: another process took the data over, for good. Clients are told for ten seconds where
	// to go; then comes Ended.
	Fenced State = C.KELP_STATE_FENCED
	// Failed: what is stored cannot be read. Then comes Ended.
	Failed State = C.KELP_STATE_FAILED
	// Ended: nothing is served any more. The program closes the engine.
	Ended State = C.KELP_STATE_ENDED
)

func (s State) String() string {
	names := [...]string{"opening", "standby", "serving", "fenced", "failed", "ended"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", int(s))
	}
	return names[s]
}

// ErrClosed is the answer of an engine that was closed or stopped.
var ErrClosed = errors.New("kelp: the engine is closed")

// ErrNotServing is the answer of an engine whose storage is not open, or not its own any more.
var ErrNotServing = errors.New("kelp: the engine does not serve")

// Engine is a Kafka broker. Its methods may be called from any goroutine.
type Engine struct {
	// Held to read by every call, to write by who takes the engine away.
	mu     sync.RWMutex
	engine *C.kelp_engine

	host   *host
	handle cgo.Handle
}

// host is what callbacks find behind their handle.
type host struct {
	Host
	// Done when the engine is closed: what operations still do then is for nobody.
	ctx    context.Context
	cancel context.CancelFunc
}

// New makes an engine. It opens the storage at once and serves when it is open, which Host.State
// is told; connections may be handed over before that.
func New(config Config, given Host) (*Engine, error) {
	if config.IOThreads < 0 || config.IOThreads > math.MaxInt32 {
		return nil, fmt.Errorf("kelp: %d I/O threads", config.IOThreads)
	}
	h := &host{Host: given}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	e := &Engine{host: h, handle: cgo.NewHandle(h)}

	properties := C.CString(strings.Join(config.Properties, "\n"))
	defer C.free(unsafe.Pointer(properties))
	var text [512]C.char
	status := C.kelp_go_new(C.uintptr_t(e.handle), given.offers(), properties,
		C.uint32_t(config.IOThreads), &e.engine, &text[0], C.size_t(len(text)))
	if status != C.KELP_OK {
		h.cancel()
		e.handle.Delete()
		return nil, fmt.Errorf("kelp: %s", C.GoString(&text[0]))
	}
	return e, nil
}

func (h Host) offers() C.uint32_t {
	var offers C.uint32_t
	offer := func(does bool, bit C.uint32_t) {
		if does {
			offers |= bit
		}
	}
	_, timeIndex := h.Storage.(TimeIndex)
	_, coordinators := h.Storage.(Coordinators)
	_, groups := h.Storage.(Groups)
	_, changes := h.Storage.(TopicChanges)
	offer(h.Objects != nil, C.KELP_GO_OBJECTS)
	offer(h.Storage != nil, C.KELP_GO_STORAGE)
	offer(timeIndex, C.KELP_GO_TIME_INDEX)
	offer(coordinators, C.KELP_GO_COORDINATORS)
	offer(groups, C.KELP_GO_GROUPS)
	offer(changes, C.KELP_GO_ALTER_TOPICS)
	offer(h.Log != nil, C.KELP_GO_LOG)
	offer(h.State != nil, C.KELP_GO_STATE)
	offer(h.TopicsChanged != nil, C.KELP_GO_TOPICS_CHANGED)
	return offers
}

// Listen listens at HOST:PORT and serves the connections that come in. With port 0 the operating
// system chooses one. The answer is the port.
func (e *Engine) Listen(address string) (int, error) {
	text := C.CString(address)
	defer C.free(unsafe.Pointer(text))
	var port C.uint16_t
	err := e.call("listen at "+address, func(engine *C.kelp_engine) C.kelp_status {
		return C.kelp_engine_listen(engine, text, &port)
	})
	return int(port), err
}

// Stop ends the engine in good order: it takes nothing new, answers what is in flight, and closes
// all connections. It waits for that, but not much longer than drain.
func (e *Engine) Stop(drain time.Duration) error {
	ms := C.uint32_t(min(max(drain.Milliseconds(), 0), math.MaxUint32))
	return e.call("stop", func(engine *C.kelp_engine) C.kelp_status {
		return C.kelp_engine_stop(engine, ms)
	})
}

// Metrics gives what the engine counts and how it stands, in the text format of Prometheus (0.0.4);
// docs/metrics.md lists the metrics. It waits for no storage. A closed engine has none.
func (e *Engine) Metrics() string {
	var text string
	e.call("metrics", func(engine *C.kelp_engine) C.kelp_status {
		// The text may grow between two calls.
		for capacity := C.size_t(64 << 10); ; {
			buffer := C.malloc(capacity)
			need := C.kelp_metrics(engine, (*C.char)(buffer), capacity)
			if need < capacity {
				text = C.GoStringN((*C.char)(buffer), C.int(need))
			}
			C.free(buffer)
			if need < capacity {
				return C.KELP_OK
			}
			capacity = 2 * need
		}
	})
	return text
}

// Close ends the engine without waiting for what is in flight: call Stop before. Afterwards the
// contexts of operations that still run are done, and the host is called no more.
func (e *Engine) Close() {
	e.mu.Lock()
	engine := e.engine
	e.engine = nil
	e.mu.Unlock()
	if engine == nil {
		return
	}
	e.host.cancel()
	// Without the lock: this waits for callbacks, and they may call the engine.
	C.kelp_engine_free(engine)
	e.handle.Delete()
}

func (e *Engine) call(what string, call func(*C.kelp_engine) C.kelp_status) error {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.engine == nil {
		return ErrClosed
	}
	return failure(what, call(e.engine))
}

func failure(what string, status C.kelp_status) error {
	switch status {
	case C.KELP_OK:
		return nil
	case C.KELP_STOPPED:
		return ErrClosed
	case C.KELP_UNAVAILABLE:
		return ErrNotServing
	case C.KELP_INVALID_ARGUMENT:
		return fmt.Errorf("kelp: %s: invalid argument", what)
	case C.KELP_IO:
		return fmt.Errorf("kelp: %s: the operating system refused it", what)
	}
	return fmt.Errorf("kelp: %s: status %d", what, int(status))
}

// Version is the version of the library.
func Version() string {
	return C.GoString(C.kelp_version())
}
