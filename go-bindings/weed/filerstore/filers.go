package filerstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/cluster"
	"github.com/seaweedfs/seaweedfs/weed/glog"
	"github.com/seaweedfs/seaweedfs/weed/pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"github.com/seaweedfs/seaweedfs/weed/pb/master_pb"
	"github.com/seaweedfs/seaweedfs/weed/wdclient"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// How often a read is sent, when the connection breaks under it.
const readAttempts = 3

// reconnect is faster than gRPC's own, which waits up to two minutes: a filer that restarts is back
// within seconds.
var reconnect = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 5 * time.Second,
})

// filers knows the filers of the group, as the master announces them, and calls one of them: always
// the same one while it can be reached. Any will do, since a filer passes a conditional create on
// to the one that owns the path.
type filers struct {
	options Options
	stop    context.CancelFunc
	adding  sync.WaitGroup

	mutex   sync.Mutex
	known   []*filer      // The first one is called.
	arrived chan struct{} // Closed when one was added, and replaced.
	warned  bool
}

type filer struct {
	address   pb.ServerAddress
	conn      *grpc.ClientConn
	server    filer_pb.SeaweedFilerServer // In this process; nil if it is in another one.
	signature int32                       // Names the filer's store.
}

// newFilers listens to the masters until close.
func newFilers(options Options) *filers {
	f := &filers{options: options, arrived: make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	masters := pb.ServerAddresses(options.Masters).ToServiceDiscovery()
	client := wdclient.NewMasterClient(options.DialOption, options.FilerGroup, "kafka-gateway", pb.ServerAddress(options.ClientAddress), "", "", *masters)
	client.SetOnPeerUpdateFn(func(update *master_pb.ClusterNodeUpdate, _ time.Time) {
		if update.NodeType != cluster.FilerType {
			return
		}
		if update.IsAdd {
			f.announce(ctx, pb.ServerAddress(update.Address))
		} else {
			f.remove(pb.ServerAddress(update.Address))
		}
	})
	// Ends up to a second after ctx, which nobody need wait for.
	go client.KeepConnectedToMaster(ctx)
	return f
}

func (f *filers) close() {
	f.mutex.Lock()
	f.stop()
	f.mutex.Unlock()
	f.adding.Wait()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, filer := range f.known {
		filer.conn.Close()
	}
}

// announce adds a filer in the background: the master's other news do not wait until it answers.
func (f *filers) announce(ctx context.Context, address pb.ServerAddress) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if ctx.Err() == nil && !f.knows(address) {
		f.adding.Go(func() { f.add(ctx, address) })
	}
}

// add takes a filer up when it answers.
func (f *filers) add(ctx context.Context, address pb.ServerAddress) {
	// Waiting for ready, a call to a filer that restarts waits instead of failing. With several
	// filers, call turns to another one.
	conn, err := pb.GrpcDial(ctx, address.ToGrpcAddress(), true, f.options.DialOption, reconnect)
	if err != nil {
		glog.Errorf("kelp: filer %s: %v", address, err)
		return
	}
	asked, cancel := context.WithTimeout(ctx, f.options.Timeout)
	defer cancel()
	server, configuration, err := meet(asked, conn)
	if err == nil && configuration.Cipher {
		err = errors.New("it encrypts volume data (-encryptVolumeData), which Kelp cannot do yet")
	}
	if err != nil {
		conn.Close()
		glog.Errorf("kelp: filer %s is not used: %v", address, err)
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.knows(address) {
		conn.Close()
		return
	}
	f.known = append(f.known, &filer{address, conn, server, configuration.Signature})
	f.warn()
	close(f.arrived)
	f.arrived = make(chan struct{})
}

// remove forgets a filer, but never the last one: it may only have restarted.
func (f *filers) remove(address pb.ServerAddress) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	i := slices.IndexFunc(f.known, func(filer *filer) bool { return filer.address == address })
	if i < 0 || len(f.known) == 1 {
		return
	}
	f.known[i].conn.Close()
	f.known = slices.Delete(f.known, i, i+1)
}

func (f *filers) knows(address pb.ServerAddress) bool {
	return slices.ContainsFunc(f.known, func(filer *filer) bool { return filer.address == address })
}

// warn tells once what Kelp cannot make safe.
func (f *filers) warn() {
	if f.warned || len(f.known) < 2 {
		return
	}
	f.warned = true
	if f.known[0].signature == f.known[len(f.known)-1].signature {
		glog.Warningf("kelp: filer group %q has several filers on one store; the store must read what was written, and a filer must not stall longer than 5 s in a write", f.options.FilerGroup)
		return
	}
	glog.Errorf("kelp: filer group %q has filers with stores of their own (%s, %s), which copy to each other only later: when one is lost, acknowledged records can be lost, and two gateways cannot fence each other. Use one filer, or one shared store",
		f.options.FilerGroup, f.known[0].address, f.known[len(f.known)-1].address)
}

// Filer makes a request of its own kind to the filer that has the objects. It is sent once.
func (o *Objects) Filer(ctx context.Context, request func(filer_pb.SeaweedFilerClient) error) error {
	return o.filers.call(ctx, request)
}

// call makes one request. It is sent once: whether a request arrived that got no answer is not known.
func (f *filers) call(ctx context.Context, request func(filer_pb.SeaweedFilerClient) error) error {
	client, err := f.client(ctx)
	if err != nil {
		return err
	}
	return request(client)
}

// callAgain makes a request that changes nothing, and sends it again when the connection broke.
func (f *filers) callAgain(ctx context.Context, request func(filer_pb.SeaweedFilerClient) error) (err error) {
	for range readAttempts {
		err = f.call(ctx, request)
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// client is the filer to call. It waits for the first one.
func (f *filers) client(ctx context.Context) (filer_pb.SeaweedFilerClient, error) {
	for {
		f.mutex.Lock()
		for range f.known {
			if f.known[0].conn.GetState() != connectivity.TransientFailure {
				break
			}
			f.known = append(f.known[1:], f.known[0])
		}
		arrived := f.arrived
		if len(f.known) > 0 {
			client := f.known[0].client()
			f.mutex.Unlock()
			return client, nil
		}
		f.mutex.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("no filer of group %q is known to the master at %s: %w", f.options.FilerGroup, f.options.Masters, ctx.Err())
		}
	}
}
