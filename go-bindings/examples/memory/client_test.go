package main

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"testing"
	"time"
)

// client speaks a few old, simple versions of Kafka's protocol.
type client struct {
	t    testing.TB
	conn *net.TCPConn
}

const (
	produceKey      = 0
	fetchKey        = 1
	offsetCommitKey = 8
	offsetFetchKey  = 9
	joinGroupKey    = 11
	heartbeatKey    = 12
	syncGroupKey    = 14
	apiVersionsKey  = 18
	createTopicsKey = 19
)

const (
	coordinatorLoadInProgress = 14
	notCoordinator            = 16
)

func connect(t testing.TB, port int) *client {
	t.Helper()
	conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return &client{t, conn}
}

func (c *client) send(key, version uint16, body []byte) {
	c.t.Helper()
	frame := binary.BigEndian.AppendUint32(nil, uint32(10+len(body)))
	frame = binary.BigEndian.AppendUint16(frame, key)
	frame = binary.BigEndian.AppendUint16(frame, version)
	frame = binary.BigEndian.AppendUint32(frame, 7)      // correlation id
	frame = binary.BigEndian.AppendUint16(frame, 0xffff) // no client id
	if _, err := c.conn.Write(append(frame, body...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) answer() []byte {
	c.t.Helper()
	var head [8]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		c.t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	if _, err := io.ReadFull(c.conn, answer); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func (c *client) apiVersions() {
	c.t.Helper()
	c.send(apiVersionsKey, 0, nil)
	if code := binary.BigEndian.Uint16(c.answer()); code != 0 {
		c.t.Fatalf("ApiVersions answers %d", code)
	}
}

// createTopic makes a topic of one partition.
func (c *client) createTopic(name string) {
	c.t.Helper()
	body := text(array(nil), name)
	body = append(body, 0, 0, 0, 1, 0, 1)             // one partition, one replica
	body = append(body, 0, 0, 0, 0, 0, 0, 0, 0)       // no assignments, no configs
	body = binary.BigEndian.AppendUint32(body, 10000) // timeout
	c.send(createTopicsKey, 0, body)
	answer := c.answer()
	if code := binary.BigEndian.Uint16(answer[len(answer)-2:]); code != 0 {
		c.t.Fatalf("CreateTopics answers %d", code)
	}
}

// produce appends a batch to partition 0 and gives its offset.
func (c *client) produce(topic string, batch []byte) int64 {
	c.t.Helper()
	body := []byte{0xff, 0xff, 0xff, 0xff} // no transaction, acks=all
	body = binary.BigEndian.AppendUint32(body, 10000)
	body = text(array(body), topic)
	body = append(array(body), 0, 0, 0, 0)
	body = binary.BigEndian.AppendUint32(body, uint32(len(batch)))
	c.send(produceKey, 3, append(body, batch...))
	answer := c.answer()[4+2+len(topic)+4+4:]
	if code := binary.BigEndian.Uint16(answer); code != 0 {
		c.t.Fatalf("Produce answers %d", code)
	}
	return int64(binary.BigEndian.Uint64(answer[2:]))
}

func (c *client) sendFetch(topic string, offset int64) {
	c.t.Helper()
	const most = 64 << 20
	body := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 100, 0, 0, 0, 1} // no replica, 100 ms for a byte
	body = append(binary.BigEndian.AppendUint32(body, most), 0)
	body = text(array(body), topic)
	body = append(array(body), 0, 0, 0, 0)
	body = binary.BigEndian.AppendUint64(body, uint64(offset))
	c.send(fetchKey, 4, binary.BigEndian.AppendUint32(body, most))
}

// fetch reads partition 0 from an offset on.
func (c *client) fetch(topic string, offset int64) []byte {
	c.t.Helper()
	c.sendFetch(topic, offset)
	answer := c.answer()[8+2+len(topic)+4+4:]
	if code := binary.BigEndian.Uint16(answer); code != 0 {
		c.t.Fatalf("Fetch answers %d", code)
	}
	return answer[2+8+8+4+4:]
}

// member is one of a group, or, with the generation -1, one who is none and only commits offsets.
type member struct {
	group      string
	generation int32
	id         string
}

// body is how most requests of a member begin.
func (m member) body() []byte {
	body := binary.BigEndian.AppendUint32(text(nil, m.group), uint32(m.generation))
	return text(body, m.id)
}

// ask asks a coordinator, again while it reads what it kept. The error code stands in the answer where
// codeAt says.
func (c *client) ask(key, version uint16, body []byte, codeAt func(answer []byte) int) (answer []byte, code uint16) {
	c.t.Helper()
	for {
		c.send(key, version, body)
		answer = c.answer()
		code = binary.BigEndian.Uint16(answer[codeAt(answer):])
		if code != coordinatorLoadInProgress {
			return answer, code
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// must is ask for an answer that says that all is well.
func (c *client) must(key, version uint16, body []byte, codeAt func(answer []byte) int) []byte {
	c.t.Helper()
	answer, code := c.ask(key, version, body, codeAt)
	if code != 0 {
		c.t.Fatalf("the API %d answers %d", key, code)
	}
	return answer
}

func atStart([]byte) int { return 0 }

func atEnd(answer []byte) int { return len(answer) - 2 }

// join makes a member, the only one, which assigns nothing.
func (c *client) join(group string) member {
	c.t.Helper()
	body := text(nil, group)
	body = binary.BigEndian.AppendUint32(body, 30_000) // session timeout
	body = text(text(body, ""), "test")
	body = append(text(array(body), "protocol"), 0, 0, 0, 0) // no metadata
	answer := c.must(joinGroupKey, 0, body, atStart)
	m := member{group: group, generation: int32(binary.BigEndian.Uint32(answer[2:]))}
	rest := answer[6+2+len("protocol"):]
	m.id = string(rest[2 : 2+binary.BigEndian.Uint16(rest)]) // it leads
	body = append(text(array(m.body()), m.id), 0, 0, 0, 0)   // no assignment
	c.must(syncGroupKey, 0, body, atStart)
	return m
}

func (c *client) heartbeat(m member) {
	c.t.Helper()
	c.must(heartbeatKey, 0, m.body(), atStart)
}

// commit commits an offset of partition 0.
func (c *client) commit(m member, topic string, offset int64, metadata string) {
	c.t.Helper()
	if code := c.tryCommit(m, topic, offset, metadata); code != 0 {
		c.t.Fatalf("OffsetCommit answers %d", code)
	}
}

func (c *client) tryCommit(m member, topic string, offset int64, metadata string) uint16 {
	c.t.Helper()
	body := append(m.body(), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // as long as the broker says
	body = append(array(text(array(body), topic)), 0, 0, 0, 0)
	body = text(binary.BigEndian.AppendUint64(body, uint64(offset)), metadata)
	_, code := c.ask(offsetCommitKey, 2, body, atEnd)
	return code
}

// committed gives the offset of partition 0, and the metadata with it.
func (c *client) committed(group, topic string) (int64, string) {
	c.t.Helper()
	body := append(array(text(array(text(nil, group)), topic)), 0, 0, 0, 0)
	answer := c.must(offsetFetchKey, 1, body, atEnd)[4+2+len(topic)+4+4:]
	return int64(binary.BigEndian.Uint64(answer)), string(answer[8+2 : len(answer)-2])
}

func array(to []byte) []byte { return append(to, 0, 0, 0, 1) }

func text(to []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}

// recordBatch is a batch (magic 2) of one record without a key. A producer id of -1 is none.
func recordBatch(value []byte, producerID int64, sequence int32) []byte {
	record := []byte{0, 0, 0, 1} // attributes, two deltas, no key
	record = binary.AppendVarint(record, int64(len(value)))
	record = append(append(record, value...), 0)
	checked := []byte{0, 0, 0, 0, 0, 0}
	checked = binary.BigEndian.AppendUint64(checked, 1000)
	checked = binary.BigEndian.AppendUint64(checked, 1000)
	checked = binary.BigEndian.AppendUint64(checked, uint64(producerID))
	checked = binary.BigEndian.AppendUint16(checked, uint16(min(producerID, 0)))
	checked = binary.BigEndian.AppendUint32(checked, uint32(sequence))
	checked = append(checked, 0, 0, 0, 1)
	checked = append(binary.AppendVarint(checked, int64(len(record))), record...)
	batch := make([]byte, 8)
	batch = binary.BigEndian.AppendUint32(batch, uint32(9+len(checked)))
	batch = append(batch, 0xff, 0xff, 0xff, 0xff, 2)
	batch = binary.BigEndian.AppendUint32(batch, crc32.Checksum(checked, crc32.MakeTable(crc32.Castagnoli)))
	return append(batch, checked...)
}
