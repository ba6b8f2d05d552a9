package kelp

// #include "bridge.h"
import "C"

import "context"

// Objects is a store of objects that are put once and never changed.
//
// PutNew and Get are linearizable for each key: to look and to insert are one step, and success is
// durable. List gives keys in the order of their bytes and shows every key whose PutNew was
// answered before. Delete may act late, partly, in any order.
//
// An error means that the outcome is unknown, or that the store does not answer; its text goes to
// the log. The methods are called on many goroutines at once. Their context is done when nobody
// waits for the answer any more.
type Objects interface {
	// PutNew stores parts, one after the other, as the object key, unless the key has one. The
	// parts are lent until PutNew returns.
	PutNew(ctx context.Context, key string, parts [][]byte) (created bool, err error)

	// Get reads length bytes from offset on, fewer where the object ends; with a negative length
	// to the end. Memory of alloc is zeroed and Kelp's: data that lies in it is not copied. It
	// must not be used after Get returned.
	Get(ctx context.Context, key string, offset, length int64, alloc func(n int) []byte) (data []byte, found bool, err error)

	// List gives the first keys, at most limit, that begin with prefix and come behind after.
	List(ctx context.Context, prefix, after string, limit int) (keys []string, err error)

	// Delete deletes objects. A key that has none is no error.
	Delete(ctx context.Context, keys []string) error
}

//export kelp_go_put_new
func kelp_go_put_new(h C.uintptr_t, op *C.kelp_put_new) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		parts := borrowAll(op.parts, op.part_count)
		created, err := host.Objects.PutNew(o.ctx, text(op.key), parts)
		if err == nil && !created {
			return C.KELP_EXISTS, nil
		}
		return status(err), err
	})
}

//export kelp_go_get
func kelp_go_get(h C.uintptr_t, op *C.kelp_get) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		length := int64(-1)
		if op.length <= maxInt64 {
			length = int64(op.length)
		}
		var memory memory
		memory.op = o.op
		data, found, err := host.Objects.Get(o.ctx, text(op.key), int64(op.offset), length, memory.alloc)
		if err == nil && !found {
			return C.KELP_NOT_FOUND, nil
		}
		if err == nil {
			op.data, err = memory.give(data)
		}
		return status(err), err
	})
}

//export kelp_go_list
func kelp_go_list(h C.uintptr_t, op *C.kelp_list) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		keys, err := host.Objects.List(o.ctx, text(op.prefix), text(op.after), int(op.limit))
		if err == nil {
			op.keys, err = o.giveTexts(keys)
			op.key_count = C.size_t(len(keys))
		}
		return status(err), err
	})
}

//export kelp_go_delete_keys
func kelp_go_delete_keys(h C.uintptr_t, op *C.kelp_delete) {
	run(h, &op.op, func(host *host, o operation) (C.kelp_status, error) {
		err := host.Objects.Delete(o.ctx, texts(op.keys, op.key_count))
		return status(err), err
	})
}
