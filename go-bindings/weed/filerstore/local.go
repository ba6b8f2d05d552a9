package filerstore

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// A filer that runs in this process is called as a function, which takes a third less time than gRPC
// for a small create (docs/performance.md). SeaweedFS hands its filer to nobody, but
// gRPC hands it to the handlers of its service. So the handler of the one call that a store makes
// when it meets a filer looks whether the caller is of this process, and tells it whom it met.

// greeting is the metadata of that call. Its value is known to this process only.
const greeting = "kelp-greeting"

// greetings maps what waits for an answer to where it wants to know the filer.
var greetings sync.Map // string → chan<- filer_pb.SeaweedFilerServer

// FindLocalFilers lets stores find filers that are started in this process afterwards. It is called once.
func FindLocalFilers() {
	methods := filer_pb.SeaweedFiler_ServiceDesc.Methods
	i := slices.IndexFunc(methods, func(method grpc.MethodDesc) bool { return method.MethodName == "GetFilerConfiguration" })
	if i < 0 {
		panic("SeaweedFS' filers have no GetFilerConfiguration any more")
	}
	handle := methods[i].Handler
	methods[i].Handler = func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		for _, name := range metadata.ValueFromIncomingContext(ctx, greeting) {
			if met, ok := greetings.LoadAndDelete(name); ok {
				met.(chan filer_pb.SeaweedFilerServer) <- server.(filer_pb.SeaweedFilerServer)
			}
		}
		return handle(server, ctx, decode, interceptor)
	}
}

// meet asks a filer for its configuration, and also returns the filer if it is of this process.
func meet(ctx context.Context, conn *grpc.ClientConn) (filer_pb.SeaweedFilerServer, *filer_pb.GetFilerConfigurationResponse, error) {
	name, met := rand.Text(), make(chan filer_pb.SeaweedFilerServer, 1)
	greetings.Store(name, met)
	defer greetings.Delete(name)
	configuration, err := filer_pb.NewSeaweedFilerClient(conn).GetFilerConfiguration(metadata.AppendToOutgoingContext(ctx, greeting, name), &filer_pb.GetFilerConfigurationRequest{})
	select {
	case server := <-met:
		return server, configuration, err
	default:
		return nil, configuration, err
	}
}

// client is how to call a filer now. One that shuts down stops gRPC before it stops its store: it is
// called as a function only while there is a connection.
func (f *filer) client() filer_pb.SeaweedFilerClient {
	client := filer_pb.NewSeaweedFilerClient(f.conn)
	if f.server != nil && f.conn.GetState() == connectivity.Ready {
		return local{client, f.server}
	}
	return client
}

// local is a filer of this process. What a store asks of it often is a function call. The filer changes
// the request of a create, also after inTime has returned: it belongs to that one call.
type local struct {
	filer_pb.SeaweedFilerClient
	server filer_pb.SeaweedFilerServer
}

func (l local) CreateEntry(ctx context.Context, in *filer_pb.CreateEntryRequest, _ ...grpc.CallOption) (*filer_pb.CreateEntryResponse, error) {
	return inTime(ctx, in, l.server.CreateEntry)
}

func (l local) LookupDirectoryEntries(ctx context.Context, in *filer_pb.LookupDirectoryEntriesRequest, _ ...grpc.CallOption) (*filer_pb.LookupDirectoryEntriesResponse, error) {
	return inTime(ctx, in, l.server.LookupDirectoryEntries)
}

func (l local) ObjectTransactionBatch(ctx context.Context, in *filer_pb.ObjectTransactionBatchRequest, _ ...grpc.CallOption) (*filer_pb.ObjectTransactionBatchResponse, error) {
	return inTime(ctx, in, l.server.ObjectTransactionBatch)
}

// inTime returns when the call does, or when ctx ends: a filer that finds no place for its own log
// waits for one, whatever its caller says. What becomes of the call then is not known, as with gRPC.
func inTime[In, Out any](ctx context.Context, in In, call func(context.Context, In) (Out, error)) (Out, error) {
	type answer struct {
		out Out
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		out, err := call(ctx, in)
		if _, is := status.FromError(err); !is {
			err = status.FromContextError(err).Err()
		}
		answered <- answer{out, err}
	}()
	select {
	case got := <-answered:
		return got.out, got.err
	case <-ctx.Done():
		return *new(Out), status.FromContextError(ctx.Err()).Err()
	}
}
