package gateway

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/filer"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/mq/pub_balancer"
	"github.com/seaweedfs/seaweedfs/weed/mq/topic"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/mq_pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/schema_pb"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"kelp/go-bindings"
)

const (
	// The namespace of SeaweedMQ that has Kafka's topics.
	namespace = "kafka"

	// An attribute of the files that a gateway wrote: its directory. A file without it, or of another
	// gateway's data, is not deleted.
	ownerAttribute = "kelp.dir"

	// How long one topic may take, and how soon and how seldom what failed is tried again.
	topicTimeout = 30 * time.Second
	firstRetry   = time.Second
	lastRetry    = time.Minute
)

// projection shows Kafka's topics to SeaweedMQ: each has a file topic.conf below /topics/kafka, which
// says how many partitions it has and how long its records are kept. It is what mq.topic.list and
// mq.topic.describe of weed shell look for. Kelp never reads it, and nothing waits for it.
//
//	changed ─▶ round: list the topics, write and delete what is not as it was left
//	   ▲         │ failed: again later, or at the next change
//	   └─────────┘
type projection struct {
	filer  func(context.Context, func(filer_pb.SeaweedFilerClient) error) error
	topics func() ([]kelp.TopicSummary, error)
	owner  string

	changed chan struct{}
	cancel  context.CancelFunc
	running sync.WaitGroup

	// What the files say, as far as it is known; nil before the folders were listed.
	shown map[string]shape
}

func newProjection(dir string) *projection {
	return &projection{owner: "/" + strings.Trim(dir, "/"), changed: make(chan struct{}, 1), cancel: func() {}}
}

// signal tells that topics changed. It never waits.
func (p *projection) signal() {
	select {
	case p.changed <- struct{}{}:
	default: // One that nobody has seen yet tells the same.
	}
}

func (p *projection) start(topics func() ([]kelp.TopicSummary, error), filer func(context.Context, func(filer_pb.SeaweedFilerClient) error) error) {
	p.topics, p.filer = topics, filer
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.running.Go(func() { p.run(ctx) })
}

// stop returns when nothing more is written.
func (p *projection) stop() {
	p.cancel()
	p.running.Wait()
}

func (p *projection) run(ctx context.Context) {
	var again <-chan time.Time
	for wait := firstRetry; ; {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-again:
		}
		again = nil
		err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, kelp.ErrNotServing) || errors.Is(err, kelp.ErrClosed):
			// Another gateway shows the topics, or the next start does.
		case err != nil:
			if wait == firstRetry {
				glog.Warningf("kafka gateway: topics are not shown to SeaweedMQ as they are, until this goes well: %v", err)
			}
			again = time.After(wait)
			wait = min(2*wait, lastRetry)
		case wait > firstRetry:
			glog.Infof("kafka gateway: topics are shown to SeaweedMQ as they are")
			wait = firstRetry
		}
	}
}

// round makes the files say what the topics are. One that cannot be written does not hold up others.
func (p *projection) round(ctx context.Context) error {
	topics, err := p.topics()
	if err != nil {
		return err
	}
	if p.shown == nil {
		if p.shown, err = p.folders(ctx); err != nil {
			return err
		}
	}
	wanted := map[string]shape{}
	for name := range p.shown {
		wanted[name] = gone
	}
	for _, topic := range topics {
		if !topic.Internal {
			wanted[topic.Name] = shapeOf(topic)
		}
	}
	var failed []error
	for name, want := range wanted {
		if p.shown[name] == want {
			continue
		}
		err := p.settle(ctx, topic.NewTopic(namespace, name), want)
		switch code := status.Code(err); {
		case err == nil && want == gone:
			delete(p.shown, name)
		case err == nil:
			p.shown[name] = want
		case ctx.Err() != nil || code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded):
			return err // So would all others fail.
		default:
			failed = append(failed, err)
		}
	}
	if len(failed) > 1 {
		return fmt.Errorf("%w, and %d more", failed[0], len(failed)-1)
	}
	return errors.Join(failed...)
}

// folders are those that there are: topics may have been deleted while no gateway was there.
func (p *projection) folders(ctx context.Context) (map[string]shape, error) {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	found := map[string]shape{}
	err := p.filer(ctx, func(client filer_pb.SeaweedFilerClient) error {
		return filer_pb.SeaweedList(ctx, client, filer.TopicsDir+"/"+namespace, "", func(entry *filer_pb.Entry, _ bool) error {
			if entry.IsDirectory {
				found[entry.Name] = unknown
			}
			return nil
		}, "", false, math.MaxInt32)
	})
	if errors.Is(err, filer_pb.ErrNotFound) {
		err = nil
	}
	return found, err
}

// settle makes the file of one topic what it should be.
func (p *projection) settle(ctx context.Context, topic topic.Topic, want shape) error {
	ctx, cancel := context.WithTimeout(ctx, topicTimeout)
	defer cancel()
	err := p.filer(ctx, func(client filer_pb.SeaweedFilerClient) error {
		entry, err := lookup(ctx, client, topic)
		switch {
		case err != nil:
			return err
		case want == gone:
			return p.remove(ctx, client, topic, entry)
		case entry == nil:
			return p.create(ctx, client, topic, want)
		default:
			return p.update(ctx, client, topic, entry, want)
		}
	})
	if err != nil {
		return fmt.Errorf("%s/%s: %w", topic.Dir(), filer.TopicConfFile, err)
	}
	return nil
}

// lookup finds a topic's file, or nil.
func lookup(ctx context.Context, client filer_pb.SeaweedFilerClient, topic topic.Topic) (*filer_pb.Entry, error) {
	response, err := filer_pb.LookupEntry(ctx, client, &filer_pb.LookupDirectoryEntryRequest{Directory: topic.Dir(), Name: filer.TopicConfFile})
	if errors.Is(err, filer_pb.ErrNotFound) {
		return nil, nil
	}
	return response.GetEntry(), err
}

func (p *projection) create(ctx context.Context, client filer_pb.SeaweedFilerClient, topic topic.Topic, want shape) error {
	entry := &filer_pb.Entry{Name: filer.TopicConfFile, Attributes: &filer_pb.FuseAttributes{Crtime: time.Now().Unix(), FileMode: 0o644}}
	if err := p.fill(entry, want.in(nil)); err != nil {
		return err
	}
	return filer_pb.CreateEntry(ctx, client, &filer_pb.CreateEntryRequest{Directory: topic.Dir(), Entry: entry, OExcl: true})
}

// update changes a file, if it says something else: a broker writes its assignments into it.
func (p *projection) update(ctx context.Context, client filer_pb.SeaweedFilerClient, topic topic.Topic, entry *filer_pb.Entry, want shape) error {
	owner, marked := entry.Extended[ownerAttribute]
	if foreign, err := p.isForeign(ctx, client, topic, entry); foreign || err != nil {
		return err
	}
	conf := &mq_pb.ConfigureTopicResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(entry.Content, conf); err != nil {
		conf.Reset() // Nobody can read it.
	} else if marked && string(owner) == p.owner && want.isIn(conf) {
		return nil
	}
	changed := proto.Clone(entry).(*filer_pb.Entry)
	if err := p.fill(changed, want.in(conf)); err != nil {
		return err
	}
	// If a broker wrote meanwhile, this comes again.
	unchanged := &filer_pb.WriteCondition_Clause{Kind: filer_pb.WriteCondition_IF_ENTRY_EQUAL, ExpectedEntry: entry}
	return filer_pb.UpdateEntry(ctx, client, &filer_pb.UpdateEntryRequest{
		Directory: topic.Dir(),
		Entry:     changed,
		Condition: &filer_pb.WriteCondition{Clauses: []*filer_pb.WriteCondition_Clause{unchanged}},
	})
}

// isForeign is true for a topic that is not Kelp's alone: of another gateway's data, or with records
// that SeaweedMQ keeps below it, which would be lost with the ranges of their partitions.
func (p *projection) isForeign(ctx context.Context, client filer_pb.SeaweedFilerClient, topic topic.Topic, entry *filer_pb.Entry) (bool, error) {
	if owner, marked := entry.Extended[ownerAttribute]; marked {
		if string(owner) != p.owner {
			glog.Warningf("kafka gateway: %s is of the gateway with -dir=%s, and stays as it is", topic.Dir(), owner)
		}
		return string(owner) != p.owner, nil
	}
	hasRecords := false
	err := filer_pb.SeaweedList(ctx, client, topic.Dir(), "", func(entry *filer_pb.Entry, _ bool) error {
		hasRecords = hasRecords || entry.IsDirectory
		return nil
	}, "", false, math.MaxInt32)
	if hasRecords {
		glog.Warningf("kafka gateway: %s has records of SeaweedMQ, and stays as it is", topic.Dir())
	}
	return hasRecords, err
}

// remove deletes the file of a topic that is gone, if it is this gateway's, and the folder, if nothing
// else is in it.
func (p *projection) remove(ctx context.Context, client filer_pb.SeaweedFilerClient, topic topic.Topic, entry *filer_pb.Entry) error {
	mine := map[string][]byte{ownerAttribute: []byte(p.owner)}
	if entry != nil {
		if string(entry.Extended[ownerAttribute]) != p.owner {
			return nil
		}
		request := &filer_pb.DeleteEntryRequest{Directory: topic.Dir(), Name: filer.TopicConfFile, IsDeleteData: true, ExpectedExtended: mine}
		if _, err := filer_pb.DoRemoveRequest(ctx, client, request); err != nil {
			return err
		}
	}
	directory, name := util.FullPath(topic.Dir()).DirAndName()
	err := filer_pb.DoRemove(ctx, client, directory, name, true, false, false, false, nil)
	if filer.IsNonEmptyFolderError(err) {
		return nil
	}
	return err
}

// fill gives a file its content, and this gateway's mark.
func (p *projection) fill(entry *filer_pb.Entry, conf *mq_pb.ConfigureTopicResponse) error {
	var text bytes.Buffer
	if err := filer.ProtoToText(&text, conf); err != nil {
		return err
	}
	sum := md5.Sum(text.Bytes())
	entry.Content, entry.Chunks = text.Bytes(), nil
	entry.Attributes.Mtime = time.Now().Unix()
	entry.Attributes.FileSize = uint64(text.Len())
	entry.Attributes.Md5 = sum[:]
	if entry.Extended == nil {
		entry.Extended = map[string][]byte{}
	}
	entry.Extended[ownerAttribute] = []byte(p.owner)
	return nil
}

// shape is what a file says of a topic.
type shape struct {
	partitions       int
	retentionSeconds int64 // 0: no limit
}

var (
	gone    = shape{}
	unknown = shape{partitions: -1}
)

func shapeOf(topic kelp.TopicSummary) shape {
	s := shape{partitions: topic.Partitions}
	if topic.Retention >= 0 {
		// SeaweedMQ counts in seconds, from one on.
		s.retentionSeconds = max(1, int64(math.Ceil(topic.Retention.Seconds())))
	}
	return s
}

func (s shape) isIn(conf *mq_pb.ConfigureTopicResponse) bool {
	retention := conf.GetRetention()
	return len(conf.BrokerPartitionAssignments) == s.partitions &&
		retention.GetEnabled() == (s.retentionSeconds > 0) && retention.GetRetentionSeconds() == s.retentionSeconds
}

// in is a configuration with this shape, and all else as it was. New assignments have no brokers: a
// broker sets them when it is asked for the topic.
func (s shape) in(conf *mq_pb.ConfigureTopicResponse) *mq_pb.ConfigureTopicResponse {
	changed := &mq_pb.ConfigureTopicResponse{}
	if conf != nil {
		changed = proto.Clone(conf).(*mq_pb.ConfigureTopicResponse)
	}
	changed.Retention = &mq_pb.TopicRetention{RetentionSeconds: s.retentionSeconds, Enabled: s.retentionSeconds > 0}
	if len(changed.BrokerPartitionAssignments) != s.partitions {
		changed.BrokerPartitionAssignments = assignments(s.partitions)
	}
	return changed
}

// assignments divide the ring of SeaweedMQ as its brokers do.
func assignments(partitions int) []*mq_pb.BrokerPartitionAssignment {
	all := make([]*mq_pb.BrokerPartitionAssignment, partitions)
	now, size := time.Now().UnixNano(), pub_balancer.MaxPartitionCount/int32(partitions)
	for i := range all {
		start := int32(i) * size
		all[i] = &mq_pb.BrokerPartitionAssignment{Partition: &schema_pb.Partition{
			RingSize:   pub_balancer.MaxPartitionCount,
			RangeStart: start,
			RangeStop:  start + size,
			UnixTimeNs: now,
		}}
	}
	all[partitions-1].Partition.RangeStop = pub_balancer.MaxPartitionCount
	return all
}
