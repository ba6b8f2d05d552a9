package kelp

// #include "bridge.h"
import "C"

import (
	"runtime/cgo"
	"time"
	"unsafe"
)

// TopicSummary is a topic, and what its settings and the broker's come to.
type TopicSummary struct {
	ID         [16]byte
	Name       string
	Partitions int
	// Retention is how long records are kept: what retention.ms is for the topic. Negative: none go
	// by their age.
	Retention time.Duration
	// Internal topics are Kafka's own, such as __consumer_offsets.
	Internal bool
}

// Topics lists the topics as they are now, in the order of their names. It waits for no storage. While
// the engine does not serve that is an error, and not a list of none.
func (e *Engine) Topics() ([]TopicSummary, error) {
	var topics []TopicSummary
	err := e.call("list topics", func(engine *C.kelp_engine) C.kelp_status {
		var list *C.kelp_topic_list
		if status := C.kelp_topic_list_new(engine, &list); status != C.KELP_OK {
			return status
		}
		defer C.kelp_topic_list_free(list)
		for topic := C.kelp_topic_list_next(list); topic != nil; topic = C.kelp_topic_list_next(list) {
			topics = append(topics, TopicSummary{
				ID:         *(*[16]byte)(unsafe.Pointer(&topic.id)),
				Name:       text(topic.name),
				Partitions: int(topic.partition_count),
				Retention:  milliseconds(int64(topic.retention_ms)),
				Internal:   topic.is_internal != 0,
			})
		}
		return C.KELP_OK
	})
	return topics, err
}

// milliseconds is a duration, or the longest that there is.
func milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, maxInt64/int64(time.Millisecond))) * time.Millisecond
}

//export kelp_go_topics_changed
func kelp_go_topics_changed(h C.uintptr_t) {
	cgo.Handle(h).Value().(*host).TopicsChanged()
}
