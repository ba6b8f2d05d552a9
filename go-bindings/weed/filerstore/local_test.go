package filerstore

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/pb/filer_pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

func init() { FindLocalFilers() }

// A filer that answers an exclusive create when it is told to.
type slowFiler struct {
	filer_pb.UnimplementedSeaweedFilerServer
	goOn chan struct{}
}

func (f *slowFiler) GetFilerConfiguration(context.Context, *filer_pb.GetFilerConfigurationRequest) (*filer_pb.GetFilerConfigurationResponse, error) {
	return &filer_pb.GetFilerConfigurationResponse{Signature: 7}, nil
}

func (f *slowFiler) CreateEntry(context.Context, *filer_pb.CreateEntryRequest) (*filer_pb.CreateEntryResponse, error) {
	<-f.goOn
	return &filer_pb.CreateEntryResponse{LogTsNs: 5}, nil
}

func (f *slowFiler) ObjectTransactionBatch(context.Context, *filer_pb.ObjectTransactionBatchRequest) (*filer_pb.ObjectTransactionBatchResponse, error) {
	return nil, context.DeadlineExceeded
}

// serve starts a filer and connects to it.
func serve(t *testing.T, filer filer_pb.SeaweedFilerServer) *grpc.ClientConn {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	filer_pb.RegisterSeaweedFilerServer(server, filer)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestAFilerOfThisProcessIsCalledAsAFunction(t *testing.T) {
	filer := &slowFiler{goOn: make(chan struct{})}
	conn := serve(t, filer)
	met, configuration, err := meet(t.Context(), conn)
	if err != nil || configuration.Signature != 7 || met != filer_pb.SeaweedFilerServer(filer) {
		t.Fatal(met, configuration, err)
	}
	close(filer.goOn)
	known := knownFiler(conn, met)
	client := known.client()
	if _, ok := client.(local); !ok {
		t.Fatalf("it is called by %T", client)
	}
	created, err := client.CreateEntry(t.Context(), &filer_pb.CreateEntryRequest{})
	if err != nil || created.LogTsNs != 5 {
		t.Fatal(created, err)
	}
	if _, err := client.LookupDirectoryEntries(t.Context(), &filer_pb.LookupDirectoryEntriesRequest{}); status.Code(err) != codes.Unimplemented {
		t.Fatal(err)
	}
	if _, err := client.ObjectTransactionBatch(t.Context(), &filer_pb.ObjectTransactionBatchRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Fatalf("an error of the filer's context is %v", err)
	}

	// A filer that shuts down is called as others are, and answers nothing.
	conn.Close()
	if _, err := known.client().CreateEntry(t.Context(), &filer_pb.CreateEntryRequest{}); status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
}

func knownFiler(conn *grpc.ClientConn, server filer_pb.SeaweedFilerServer) *filer {
	return &filer{conn: conn, server: server}
}

func TestACallerWaitsForNoFilerOfThisProcessLongerThanItSays(t *testing.T) {
	filer := &slowFiler{goOn: make(chan struct{})}
	defer close(filer.goOn)
	conn := serve(t, filer)
	met, _, err := meet(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	client := knownFiler(conn, met).client()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := client.CreateEntry(ctx, &filer_pb.CreateEntryRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Fatal(err)
	}
}

// A connection through which a greeting does not come: as to a filer of another process, which does not
// know whom it is for.
func TestAnotherProcessesFilerIsCalledOverItsConnection(t *testing.T) {
	filer := &slowFiler{}
	conn := serve(t, filer)
	lost := grpc.WithUnaryInterceptor(func(ctx context.Context, method string, request, reply any, _ *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		return invoke(t.Context(), method, request, reply, conn, options...)
	})
	deaf, err := grpc.NewClient("passthrough:///unused", grpc.WithTransportCredentials(insecure.NewCredentials()), lost)
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	met, _, err := meet(t.Context(), deaf)
	if err != nil || met != nil {
		t.Fatal("it was met without a greeting", met, err)
	}
	if _, ok := knownFiler(deaf, met).client().(local); ok {
		t.Fatal("it is called as a function")
	}
}

func TestNobodyWaitsForAFilerThatWasNotReached(t *testing.T) {
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, _, err := meet(t.Context(), conn); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	greetings.Range(func(name, _ any) bool {
		t.Fatal("a greeting stayed:", name)
		return false
	})
}
