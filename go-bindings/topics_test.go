package kelp

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"
)

// createTopic makes one of three partitions, with a retention of an hour, by version 0 of the request.
func createTopic(t *testing.T, port int, name string) {
	t.Helper()
	text := func(s string) []byte { return append([]byte{0, byte(len(s))}, s...) }
	request := []byte{0, 19, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0, 0, 0, 1} // One topic.
	request = append(request, text(name)...)
	request = append(request, 0, 0, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1) // Partitions, replicas, no assignments, one config.
	request = append(request, text("retention.ms")...)
	request = append(request, text("3600000")...)
	request = append(request, 0, 0, 0x75, 0x30) // 30 s
	conn := dial(t, port)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4+4+4+2+len(name)+2)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	if code := binary.BigEndian.Uint16(answer[len(answer)-2:]); code != 0 {
		t.Fatalf("error code %d", code)
	}
}

func TestTopicsAreListedAndTheirChangesTold(t *testing.T) {
	changed := make(chan struct{}, 100)
	engine := start(t, Host{Objects: &objects{}, TopicsChanged: func() { changed <- struct{}{} }})
	port, err := engine.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	await := func(satisfied func([]TopicSummary) bool) {
		t.Helper()
		for timeout := time.After(time.Minute); ; {
			topics, err := engine.Topics()
			if err != nil {
				t.Fatal(err)
			}
			if satisfied(topics) {
				return
			}
			select {
			case <-changed:
			case <-timeout:
				t.Fatalf("the topics stay %v", topics)
			}
		}
	}
	<-changed // It serves.
	await(func(topics []TopicSummary) bool { return len(topics) == 0 })
	createTopic(t, port, "clicks")
	await(func(topics []TopicSummary) bool {
		if len(topics) != 1 {
			return false
		}
		clicks := topics[0]
		clicks.ID = [16]byte{}
		if want := (TopicSummary{Name: "clicks", Partitions: 3, Retention: time.Hour}); clicks != want || topics[0].ID == clicks.ID {
			t.Errorf("the topic is %v", topics[0])
		}
		return true
	})

	if err := engine.Stop(time.Second); err != nil {
		t.Fatal(err)
	}
	if topics, err := engine.Topics(); !errors.Is(err, ErrNotServing) {
		t.Errorf("a stopped engine has the topics %v, error %v", topics, err)
	}
	engine.Close()
	if topics, err := engine.Topics(); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed engine has the topics %v, error %v", topics, err)
	}
}

func TestARetentionWithoutEndIsTheLongestThereIs(t *testing.T) {
	for ms, want := range map[int64]time.Duration{-1: -time.Millisecond, 0: 0, 1500: 1500 * time.Millisecond, maxInt64: maxInt64} {
		if got := milliseconds(ms).Truncate(time.Second); got != want.Truncate(time.Second) {
			t.Errorf("%d ms are %s", ms, got)
		}
	}
}
