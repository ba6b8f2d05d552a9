// Package weedtest runs weeds in processes of their own, which tests can stop and kill: the program is
// the test itself.
package weedtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/command"
	flag "github.com/seaweedfs/seaweedfs/weed/util/fla9"
)

// runAsWeed makes the test binary a weed.
const runAsWeed = "KELP_TEST_RUN_AS_WEED"

// RunsAsWeed is for TestMain: it runs the command that this process was started for, and is true then.
// What prepare does to the commands of SeaweedFS is done first.
func RunsAsWeed(prepare ...func()) bool {
	if os.Getenv(runAsWeed) == "" {
		return false
	}
	for _, do := range prepare {
		do()
	}
	flag.CommandLine.Parse([]string{"-logtostderr"})
	for _, candidate := range command.Commands {
		if candidate.Name() == os.Args[1] {
			candidate.Flag.Parse(os.Args[2:])
			candidate.Run(candidate, candidate.Flag.Args())
		}
	}
	return true
}

// weed is a command that a process of its own runs.
func weed(ctx context.Context, args ...string) *exec.Cmd {
	process := exec.CommandContext(ctx, "/proc/self/exe", args...)
	process.Env = append(os.Environ(), runAsWeed+"=1")
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return process
}

// Server is a running `weed server` with a filer.
type Server struct {
	Dir   string
	Ports []int    // Of master, its gRPC, volume, its gRPC, filer, its gRPC.
	Flags []string // More than those that every server has.

	process *exec.Cmd
	log     *os.File
}

// FirstPort is where free ports are looked for. Packages are tested at once, so each has its own.
var FirstPort = 21100

// New starts a weed that reads security.toml of its directory.
func New(dir, security string, flags ...string) (*Server, error) {
	s := &Server{Dir: dir, Flags: flags}
	for range 6 {
		s.Ports = append(s.Ports, FreePort())
	}
	if err := os.WriteFile(filepath.Join(dir, "security.toml"), []byte(security), 0o600); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Own starts a weed for one test.
func Own(t *testing.T, security string, flags ...string) *Server {
	t.Helper()
	s, err := New(t.TempDir(), security, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Start starts it again, after Kill.
func (s *Server) Start() error {
	// The volume server keeps its files apart from the configuration.
	data := filepath.Join(s.Dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	args := []string{"server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=" + data, "-filer", "-volume.max=0", "-master.volumeSizeLimitMB=1024",
		"-master.peers=none", "-master.telemetry=false", "-volume.preStopSeconds=0"}
	for i, name := range []string{"master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc"} {
		args = append(args, fmt.Sprintf("-%s=%d", name, s.Ports[i]))
	}
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.log = log
	s.process = weed(context.Background(), append(args, s.Flags...)...)
	s.process.Dir = s.Dir
	s.process.Stdout, s.process.Stderr = log, log
	return s.process.Start()
}

// Kill ends it at once.
func (s *Server) Kill() {
	if s.process.Process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
	s.log.Close()
}

// Signal sends one to it.
func (s *Server) Signal(signal os.Signal) { s.process.Process.Signal(signal) }

// Masters is what -master of other commands is.
func (s *Server) Masters() string { return fmt.Sprintf("127.0.0.1:%d.%d", s.Ports[0], s.Ports[1]) }

// Shell gives what `weed shell` prints when it gets these lines.
func (s *Server) Shell(lines ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shell := weed(ctx, "shell", "-master="+s.Masters())
	shell.Dir = s.Dir
	shell.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	text, _ := shell.Output() // What failed is not in the text.
	return string(text)
}

// Await looks until it is satisfied.
func Await[T any](t testing.TB, look func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		seen, satisfied := look()
		if satisfied {
			return seen
		}
		if time.Now().After(end) {
			t.Fatalf("it stays %v", seen)
		}
	}
}

// FreePort is one that nobody had a moment ago.
func FreePort() int {
	for ; ; FirstPort++ {
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(FirstPort))
		if err == nil {
			listener.Close()
			FirstPort++
			return FirstPort - 1
		}
	}
}
