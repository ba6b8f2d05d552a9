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
	client, configuration, err := meet(t.Context(), serve(t, filer))
	if err != nil || configuration.Signature != 7 {
		t.Fatal(configuration, err)
	}
	if met, ok := client.(local); !ok || met.server != filer_pb.SeaweedFilerServer(filer) {
		t.Fatalf("met %#v", client)
	}
	close(filer.goOn)
	response, err := client.CreateEntry(t.Context(), &filer_pb.CreateEntryRequest{})
	if err != nil || response.LogTsNs != 5 {
		t.Fatal(response, err)
	}
}

func TestACallerWaitsForNoFilerOfThisProcessLongerThanItSays(t *testing.T) {
	filer := &slowFiler{goOn: make(chan struct{})}
	defer close(filer.goOn)
	client, _, err := meet(t.Context(), serve(t, filer))
	if err != nil {
		t.Fatal(err)
	}
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
		return invoke(context.WithoutCancel(t.Context()), method, request, reply, conn, options...)
	})
	deaf, err := grpc.NewClient("passthrough:///unused", grpc.WithTransportCredentials(insecure.NewCredentials()), lost)
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	client, _, err := meet(t.Context(), deaf)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := client.(local); ok {
		t.Fatal("it was met without a greeting")
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
