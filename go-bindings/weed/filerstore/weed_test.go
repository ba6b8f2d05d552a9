package filerstore

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/command"
	flag "github.com/seaweedfs/seaweedfs/weed/util/fla9"
)

// runAsWeed makes the test binary a weed. A server of its own process can be stopped and killed.
const runAsWeed = "KELP_TEST_RUN_AS_WEED"

func TestMain(m *testing.M) {
	if os.Getenv(runAsWeed) != "" {
		weed(os.Args[1:])
		return
	}
	status := m.Run()
	if shared.server != nil {
		shared.server.kill()
		os.RemoveAll(shared.server.dir)
	}
	os.Exit(status)
}

func weed(args []string) {
	flag.CommandLine.Parse([]string{"-logtostderr"})
	for _, candidate := range command.Commands {
		if candidate.Name() == args[0] {
			candidate.Flag.Parse(args[1:])
			candidate.Run(candidate, candidate.Flag.Args())
		}
	}
}

// server is a running `weed server` with a filer.
type server struct {
	dir     string
	ports   []int // master, its gRPC, volume, its gRPC, filer, its gRPC
	process *exec.Cmd
	log     *os.File
}

// firstPort is where tests look for free ports.
var firstPort = 21100

// newServer starts a weed that reads security.toml of its directory.
func newServer(dir, security string) (*server, error) {
	s := &server{dir: dir}
	for range 6 {
		s.ports = append(s.ports, freePort())
	}
	if err := os.WriteFile(filepath.Join(dir, "security.toml"), []byte(security), 0o600); err != nil {
		return nil, err
	}
	return s, s.start()
}

// ownServer starts a weed for one test.
func ownServer(t *testing.T, security string) *server {
	t.Helper()
	s, err := newServer(t.TempDir(), security)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	return s
}

func (s *server) start() error {
	// The volume server keeps its files apart from the configuration.
	data := filepath.Join(s.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	args := []string{"server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + data, "-filer", "-volume.max=0", "-master.volumeSizeLimitMB=1024",
		"-master.peers=none", "-master.telemetry=false", "-volume.preStopSeconds=0"}
	for i, name := range []string{"master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"} {
		args = append(args, fmt.Sprintf("-%s=%d", name, s.ports[i]))
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.log = log
	s.process = exec.Command("/proc/self/exe", args...)
	s.process.Dir = s.dir
	s.process.Env = append(os.Environ(), runAsWeed+"=1")
	s.process.Stdout, s.process.Stderr = log, log
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return s.process.Start()
}

func (s *server) kill() {
	if s.process.Process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
	s.log.Close()
}

func (s *server) masters() string { return fmt.Sprintf("127.0.0.1:%d.%d", s.ports[0], s.ports[1]) }

func freePort() int {
	for ; ; firstPort++ {
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(firstPort))
		if err == nil {
			listener.Close()
			firstPort++
			return firstPort - 1
		}
	}
}

var shared struct {
	once   sync.Once
	server *server
	err    error
}

// open returns objects on a server that all tests share, each in a directory of its own.
func open(t testing.TB, change ...func(*Options)) *Objects {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "kelp-filerstore-")
		if err == nil {
			shared.server, err = newServer(dir, "")
		}
		shared.err = err
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return openOn(t, shared.server, change...)
}

func openOn(t testing.TB, server *server, change ...func(*Options)) *Objects {
	t.Helper()
	options := Options{Masters: server.masters(), Dir: "/kelp-" + strings.ReplaceAll(t.Name(), "/", "-")}
	for _, change := range change {
		change(&options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	objects, err := Open(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	return objects
}
