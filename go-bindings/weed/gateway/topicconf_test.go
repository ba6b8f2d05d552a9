package gateway

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/filer"
	"github.com/seaweedfs/seaweedfs/weed/mq/topic"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/mq_pb"
	"kelp/go-bindings"
	"kelp/go-bindings/weed/filerstore"
	"kelp/go-bindings/weed/internal/weedtest"
)

func TestMain(m *testing.M) {
	if weedtest.RunsAsWeed() {
		return
	}
	weedtest.FirstPort = 21500
	os.Exit(m.Run())
}

const day = 24 * time.Hour

// stage is a projection of topics that a test sets, on a filer.
type stage struct {
	t       *testing.T
	objects *filerstore.Objects

	mu     sync.Mutex
	topics []kelp.TopicSummary
	shows  *projection
}

func newStage(t *testing.T, server *weedtest.Server) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	objects, err := filerstore.Open(ctx, filerstore.Options{Masters: server.Masters(), Dir: "/kelp"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	return &stage{t: t, objects: objects}
}

// start makes a projection as a gateway with this directory does when it begins to serve.
func (s *stage) start(dir string) {
	s.shows = newProjection(dir)
	s.shows.start(func() ([]kelp.TopicSummary, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.topics, nil
	}, s.objects.Filer)
	s.t.Cleanup(s.shows.stop)
	s.shows.signal()
}

func (s *stage) set(topics ...kelp.TopicSummary) {
	s.mu.Lock()
	s.topics = topics
	s.mu.Unlock()
	s.shows.signal()
}

// filer makes a request that must go well.
func (s *stage) filer(request func(filer_pb.SeaweedFilerClient) error) {
	s.t.Helper()
	if err := s.objects.Filer(s.t.Context(), request); err != nil {
		s.t.Fatal(err)
	}
}

// conf reads a topic's file as SeaweedMQ does; nil if there is none.
func (s *stage) conf(name string) (conf *mq_pb.ConfigureTopicResponse) {
	s.t.Helper()
	s.filer(func(client filer_pb.SeaweedFilerClient) (err error) {
		conf, err = topic.NewTopic("kafka", name).ReadConfFile(client)
		if errors.Is(err, filer_pb.ErrNotFound) {
			return nil
		}
		return err
	})
	return conf
}

func (s *stage) save(name string, conf *mq_pb.ConfigureTopicResponse) {
	s.t.Helper()
	s.filer(func(client filer_pb.SeaweedFilerClient) error {
		return topic.NewTopic("kafka", name).WriteConfFile(client, conf)
	})
}

// await waits until the file of a topic says this.
func (s *stage) await(name string, partitions int, seconds int64) *mq_pb.ConfigureTopicResponse {
	s.t.Helper()
	return weedtest.Await(s.t, func() (*mq_pb.ConfigureTopicResponse, bool) {
		conf := s.conf(name)
		return conf, conf != nil && shape{partitions, seconds}.isIn(conf)
	})
}

// awaitFolders waits until these are the folders of Kafka's topics.
func (s *stage) awaitFolders(wanted ...string) {
	s.t.Helper()
	weedtest.Await(s.t, func() ([]string, bool) {
		found, err := s.shows.folders(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(found))
		return names, slices.Equal(names, wanted)
	})
}

func clicks(partitions int, retention time.Duration) kelp.TopicSummary {
	return kelp.TopicSummary{Name: "clicks", Partitions: partitions, Retention: retention}
}

func TestTopicsAreShownAsTheyAre(t *testing.T) {
	s := newStage(t, weedtest.Own(t, ""))
	s.start("/kelp")
	offsets := kelp.TopicSummary{Name: "__consumer_offsets", Partitions: 50, Retention: -1, Internal: true}
	s.set(offsets, clicks(3, 7*day), kelp.TopicSummary{Name: "orders", Partitions: 1, Retention: -1})
	conf := s.await("clicks", 3, 604800)
	s.await("orders", 1, 0)
	s.awaitFolders("clicks", "orders")
	stop := int32(0)
	for _, assignment := range conf.BrokerPartitionAssignments {
		if p := assignment.Partition; p.RangeStart != stop || p.RangeStop <= p.RangeStart || p.RingSize != 2520 || p.UnixTimeNs == 0 || assignment.LeaderBroker != "" {
			t.Errorf("an assignment is %v", assignment)
		}
		stop = assignment.Partition.RangeStop
	}
	if stop != 2520 {
		t.Errorf("the partitions end at %d", stop)
	}

	s.set(clicks(3, 1500*time.Millisecond))
	s.awaitFolders("clicks")
	if now := s.await("clicks", 3, 2); now.BrokerPartitionAssignments[0].Partition.UnixTimeNs != conf.BrokerPartitionAssignments[0].Partition.UnixTimeNs {
		t.Error("another retention made other assignments")
	}
	s.set(clicks(5, 0))
	s.await("clicks", 5, 1)
	s.set()
	s.awaitFolders()
}

func TestWhatABrokerWroteStaysUntilItIsWrong(t *testing.T) {
	s := newStage(t, weedtest.Own(t, ""))
	s.start("/kelp")
	s.set(clicks(2, day))
	conf := s.await("clicks", 2, 86400)
	s.shows.stop()

	conf.BrokerPartitionAssignments[0].LeaderBroker = "broker:17777"
	conf.KeyColumns = []string{"user"}
	s.save("clicks", conf)
	s.start("/kelp")
	s.set(clicks(2, day), kelp.TopicSummary{Name: "next", Partitions: 1})
	s.await("next", 1, 1) // The round that looked at it is over when the next one is.
	s.set(clicks(2, day))
	s.awaitFolders("clicks")
	if now := s.conf("clicks"); now.BrokerPartitionAssignments[0].LeaderBroker != "broker:17777" {
		t.Errorf("a start changed %v", now)
	}
	s.set(clicks(2, 2*day))
	if now := s.await("clicks", 2, 172800); now.BrokerPartitionAssignments[0].LeaderBroker != "broker:17777" || !slices.Equal(now.KeyColumns, []string{"user"}) {
		t.Errorf("another retention changed %v", now)
	}
	s.set(clicks(3, 2*day))
	if now := s.await("clicks", 3, 172800); now.BrokerPartitionAssignments[0].LeaderBroker != "" || !slices.Equal(now.KeyColumns, []string{"user"}) {
		t.Errorf("more partitions made %v", now)
	}
	s.shows.stop()
	conf.Retention = nil
	s.save("clicks", conf) // As somebody might by hand.
	s.start("/kelp")
	s.await("clicks", 3, 172800)
}

func TestAStartDeletesWhatWasLeftAndNothingElse(t *testing.T) {
	s := newStage(t, weedtest.Own(t, ""))
	s.start("/kelp")
	s.set(clicks(1, day), kelp.TopicSummary{Name: "orders", Partitions: 1, Retention: day}, kelp.TopicSummary{Name: "shared", Partitions: 1, Retention: day})
	s.await("clicks", 1, 86400)
	s.await("orders", 1, 86400)
	s.await("shared", 1, 86400)
	s.shows.stop()
	s.start("/another")
	s.set(kelp.TopicSummary{Name: "theirs", Partitions: 1, Retention: day})
	s.await("theirs", 1, 86400)
	s.shows.stop()

	// SeaweedMQ has records below two topics; one of them was never Kelp's.
	for _, name := range []string{"native", "shared"} {
		s.filer(func(client filer_pb.SeaweedFilerClient) error {
			return filer.SaveInsideFiler(t.Context(), client, "/topics/kafka/"+name+"/v2026-01-01-00-00-00/0000-2520", "records", []byte("x"))
		})
	}
	s.save("native", &mq_pb.ConfigureTopicResponse{BrokerPartitionAssignments: assignments(4)})
	s.topics = nil
	s.start("/kelp")
	s.awaitFolders("native", "shared", "theirs")
	if s.conf("native") == nil || s.conf("theirs") == nil || s.conf("shared") != nil {
		t.Errorf("of others: %v, %v; left: %v", s.conf("native"), s.conf("theirs"), s.conf("shared"))
	}

	// Topics with the names of others'.
	s.set(kelp.TopicSummary{Name: "native", Partitions: 1, Retention: day}, kelp.TopicSummary{Name: "theirs", Partitions: 9, Retention: day}, clicks(1, day))
	s.await("clicks", 1, 86400)
	s.set()
	s.awaitFolders("native", "shared", "theirs")
	if len(s.conf("native").BrokerPartitionAssignments) != 4 || len(s.conf("theirs").BrokerPartitionAssignments) != 1 {
		t.Error("what others wrote was changed")
	}
}

func TestAnOutageOfTheFilerOnlyDelays(t *testing.T) {
	server := weedtest.Own(t, "")
	s := newStage(t, server)
	s.start("/kelp")
	s.set(clicks(1, day))
	s.await("clicks", 1, 86400)
	server.Kill()
	s.set(clicks(2, day))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	weedtest.Await(t, func() (error, bool) {
		err := s.objects.Filer(t.Context(), func(client filer_pb.SeaweedFilerClient) error {
			_, err := topic.NewTopic("kafka", "clicks").ReadConfFile(client)
			return err
		})
		return err, err == nil
	})
	s.await("clicks", 2, 86400)
}
