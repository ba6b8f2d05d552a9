package kelp

// #include "bridge.h"
// #include <string.h>
import "C"

import (
	"context"
	"errors"
	"math"
	"runtime/cgo"
	"time"
	"unsafe"
)

const maxInt64 = math.MaxInt64

// operation is what Kelp asks of the host. It is Kelp's memory until it is completed.
type operation struct {
	ctx context.Context
	op  *C.kelp_op
}

// run answers an operation on a goroutine of its own: the thread that brought it is Kelp's
// dispatcher, on which nothing may wait.
func run(h C.uintptr_t, op *C.kelp_op, answer func(*host, operation) (C.kelp_status, error)) {
	host := cgo.Handle(h).Value().(*host)
	go func() {
		ctx := host.ctx
		if op.timeout_ms > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(op.timeout_ms)*time.Millisecond)
			defer cancel()
		}
		o := operation{ctx, op}
		status, err := answer(host, o)
		if err != nil {
			op.error = o.giveText(err.Error())
		}
		C.kelp_op_complete(op, status)
	}()
}

// status is the number for an error of the host.
func status(err error) C.kelp_status {
	switch {
	case err == nil:
		return C.KELP_OK
	case errors.Is(err, ErrOffsetOutOfRange):
		return C.KELP_OFFSET_OUT_OF_RANGE
	case errors.Is(err, ErrUnknownTopicOrPartition):
		return C.KELP_UNKNOWN_TOPIC_OR_PARTITION
	case errors.Is(err, ErrTopicExists):
		return C.KELP_TOPIC_ALREADY_EXISTS
	case errors.Is(err, ErrNotLeader):
		return C.KELP_NOT_LEADER_OR_FOLLOWER
	case errors.Is(err, context.DeadlineExceeded):
		return C.KELP_TIMED_OUT
	}
	return C.KELP_UNAVAILABLE
}

var errNoMemory = errors.New("kelp: out of memory")

// memory is where the answer of an operation goes.
type memory struct {
	op    *C.kelp_op
	spans [][]byte
}

// alloc gives n zeroed bytes of Kelp's, or nil if there are none.
func (m *memory) alloc(n int) []byte {
	if n <= 0 {
		return []byte{}
	}
	p := C.kelp_op_alloc(m.op, C.size_t(n))
	if p == nil {
		return nil
	}
	span := unsafe.Slice((*byte)(p), n)
	m.spans = append(m.spans, span)
	return span
}

// give makes data part of the answer, without a copy where it is in Kelp's memory already.
func (m *memory) give(data []byte) (C.kelp_bytes, error) {
	if len(data) == 0 {
		return C.kelp_bytes{}, nil
	}
	if !m.holds(data) {
		copied := m.alloc(len(data))
		if copied == nil {
			return C.kelp_bytes{}, errNoMemory
		}
		copy(copied, data)
		data = copied
	}
	return C.kelp_bytes{ptr: (*C.uint8_t)(unsafe.SliceData(data)), len: C.size_t(len(data))}, nil
}

func (m *memory) holds(data []byte) bool {
	start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	for _, span := range m.spans {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(span)))
		if from <= start && start+uintptr(len(data)) <= from+uintptr(len(span)) {
			return true
		}
	}
	return false
}

// allocArray gives zeroed C memory for n values of T, or nil if n is 0.
func allocArray[T any](o operation, n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	var zero T
	p := C.kelp_op_alloc(o.op, C.size_t(n)*C.size_t(unsafe.Sizeof(zero)))
	if p == nil {
		return nil, errNoMemory
	}
	return unsafe.Slice((*T)(p), n), nil
}

// giveText copies a text for the answer; without memory it is empty.
func (o operation) giveText(text string) C.kelp_str {
	m := memory{op: o.op}
	bytes, err := m.give([]byte(text))
	if err != nil {
		return C.kelp_str{}
	}
	return C.kelp_str{ptr: (*C.char)(unsafe.Pointer(bytes.ptr)), len: bytes.len}
}

// giveTexts copies texts for the answer, in one piece.
func (o operation) giveTexts(texts []string) (*C.kelp_str, error) {
	total := 0
	for _, text := range texts {
		total += len(text)
	}
	array, err := allocArray[C.kelp_str](o, len(texts))
	if err != nil {
		return nil, err
	}
	bytes, err := allocArray[byte](o, total)
	if err != nil {
		return nil, err
	}
	for i, text := range texts {
		if text == "" {
			continue
		}
		copy(bytes, text)
		array[i] = C.kelp_str{ptr: (*C.char)(unsafe.Pointer(&bytes[0])), len: C.size_t(len(text))}
		bytes = bytes[len(text):]
	}
	return unsafe.SliceData(array), nil
}

// text copies a text of Kelp's.
func text(s C.kelp_str) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(s.ptr)), int(s.len)))
}

func texts(first *C.kelp_str, n C.size_t) []string {
	all := make([]string, n)
	for i, s := range unsafe.Slice(first, int(n)) {
		all[i] = text(s)
	}
	return all
}

// borrow shows bytes of Kelp's, which stay until the operation is completed.
func borrow(b C.kelp_bytes) []byte {
	return unsafe.Slice((*byte)(b.ptr), int(b.len))
}

func borrowAll(first *C.kelp_bytes, n C.size_t) [][]byte {
	all := make([][]byte, n)
	for i, b := range unsafe.Slice(first, int(n)) {
		all[i] = borrow(b)
	}
	return all
}

//export kelp_go_log
func kelp_go_log(h C.uintptr_t, level C.int32_t, target, line C.kelp_str) {
	host := cgo.Handle(h).Value().(*host)
	host.Log(Level(level), text(target)+": "+text(line))
}

//export kelp_go_state
func kelp_go_state(h C.uintptr_t, number C.int32_t, detail C.kelp_str) {
	host := cgo.Handle(h).Value().(*host)
	host.State(State(number), text(detail))
}
