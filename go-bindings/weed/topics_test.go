package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/command"
	"kelp/go-bindings/weed/internal/weedtest"
)

func TestMain(m *testing.M) {
	if weedtest.RunsAsWeed(func() { useKelp(command.Commands) }) {
		return
	}
	weedtest.FirstPort = 21800
	os.Exit(m.Run())
}

// broker is a `weed server` with Kelp, as a Kafka client sees it.
type broker struct {
	t    *testing.T
	port int
}

const (
	createTopics            = 19
	deleteTopics            = 20
	createPartitions        = 37
	incrementalAlterConfigs = 44
)

// ask sends a request as the gateway has it, when it serves, and wants no error code at this place of
// the answer.
func (b broker) ask(key, version uint16, body []byte, codeAt int) {
	b.t.Helper()
	conn := weedtest.Await(b.t, func() (net.Conn, bool) {
		conn, err := net.DialTCP("tcp", nil, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: b.port})
		return conn, err == nil
	})
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	frame := binary.BigEndian.AppendUint32(nil, uint32(10+len(body)))
	frame = binary.BigEndian.AppendUint16(frame, key)
	frame = binary.BigEndian.AppendUint16(frame, version)
	frame = append(frame, 0, 0, 0, 7, 0xff, 0xff) // correlation id, no client id
	if _, err := conn.Write(append(frame, body...)); err != nil {
		b.t.Fatal(err)
	}
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		b.t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		b.t.Fatal(err)
	}
	if code := binary.BigEndian.Uint16(answer[4+codeAt:]); code != 0 {
		b.t.Fatalf("request %d is answered with the error code %d", key, code)
	}
}

func text(s string) []byte { return append([]byte{0, byte(len(s))}, s...) }

func number(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func body(parts ...[]byte) (all []byte) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

var timeout = number(30_000)

func (b broker) create(topic string, partitions int, retention string) {
	b.t.Helper()
	// One topic, of one replica, without assignments, with one config.
	b.ask(createTopics, 0, body(number(1), text(topic), number(partitions), []byte{0, 1}, number(0), number(1), text("retention.ms"), text(retention), timeout), 4+2+len(topic))
}

func (b broker) grow(topic string, partitions int) {
	b.t.Helper()
	b.ask(createPartitions, 0, body(number(1), text(topic), number(partitions), number(-1), timeout, []byte{0}), 4+4+2+len(topic))
}

func (b broker) setRetention(topic, retention string) {
	b.t.Helper()
	b.ask(incrementalAlterConfigs, 0, body(number(1), []byte{2}, text(topic), number(1), text("retention.ms"), []byte{0}, text(retention), []byte{0}), 4+4)
}

func (b broker) delete(topic string) {
	b.t.Helper()
	b.ask(deleteTopics, 0, body(number(1), text(topic), timeout), 4+2+len(topic))
}

func TestWeedShellShowsTheTopicsOfKafka(t *testing.T) {
	port := weedtest.FreePort()
	server := weedtest.Own(t, "", "-mq.kafka.gateway", fmt.Sprintf("-mq.kafka.gateway.port=%d", port), "-mq.broker", fmt.Sprintf("-mq.broker.port=%d", weedtest.FreePort()))
	kafka := broker{t, port}
	await := func(line string, satisfied func(string) bool) {
		t.Helper()
		weedtest.Await(t, func() (string, bool) {
			said := server.Shell(line)
			return said, satisfied(said)
		})
	}
	clicks := regexp.MustCompile(`namespace:"kafka"\s+name:"clicks"`)
	const describe, cat = "mq.topic.describe -namespace kafka -topic clicks", "fs.cat /topics/kafka/clicks/topic.conf"
	partitions := func(count int) func(string) bool {
		return func(said string) bool { return strings.Count(said, "leader_broker:") == count }
	}
	retention := func(seconds string) func(string) bool {
		return regexp.MustCompile(`"retentionSeconds":\s*"` + seconds + `"`).MatchString
	}

	kafka.create("clicks", 3, "3600000")
	await("mq.topic.list", clicks.MatchString)
	await(describe, partitions(3))
	await(cat, retention("3600"))

	kafka.grow("clicks", 5)
	kafka.setRetention("clicks", "7200000")
	await(cat, retention("7200"))
	server.Kill()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	await("mq.topic.list", clicks.MatchString)
	await(describe, partitions(5))

	kafka.delete("clicks")
	await("mq.topic.list", func(said string) bool { return strings.Contains(said, "no topics found") })
}
