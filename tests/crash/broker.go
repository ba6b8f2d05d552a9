package main

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
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A broker is a process that the tests start and signal. It has a process group of its own, which gets the signals: COMMAND may be
// a script around the broker.
type broker struct {
	address, command, log string
	process               *exec.Cmd
	done                  chan struct{} // closed when the process has ended
}

func newBroker(address, command, log string) *broker {
	os.Remove(log)
	return &broker{address: address, command: command, log: log}
}

// start starts the broker and waits until it serves.
func (b *broker) start(ctx context.Context) error {
	if b.listens() {
		return fmt.Errorf("something else listens on %s", b.address)
	}
	if err := b.spawn(); err != nil {
		return err
	}
	return b.ready(ctx)
}

func (b *broker) spawn() error {
	log, err := os.OpenFile(b.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	b.process = exec.Command("sh", "-c", b.command)
	b.process.Stdout, b.process.Stderr = log, log
	b.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.process.Start(); err != nil {
		return err
	}
	b.done = make(chan struct{})
	go func() {
		b.process.Wait()
		close(b.done)
	}()
	return nil
}

// ready waits until the broker answers, or has ended.
func (b *broker) ready(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.address), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := client.Ping(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-b.done:
			status, _ := b.ended()
			return fmt.Errorf("the broker ended with status %d before it served, see %s", status, b.log)
		case <-ctx.Done():
			return fmt.Errorf("no broker at %s: %w", b.address, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (b *broker) listens() bool {
	connection, err := net.DialTimeout("tcp", b.address, time.Second)
	if err != nil {
		return false
	}
	connection.Close()
	return true
}

// kill ends the broker as a crash does. A broker that is not running stays so.
func (b *broker) kill() {
	if b.process != nil {
		b.signal(syscall.SIGKILL)
		<-b.done
		// What the shell started dies by the same signal, but perhaps a moment after it.
		for len(b.processes()) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// processes are those of the broker's group that live.
func (b *broker) processes() (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		// One that has ended meanwhile reads as nothing.
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var parent, group int
		if n, _ := fmt.Sscan(rest, &state, &parent, &group); n != 3 || group != b.process.Process.Pid {
			continue
		}
		// The first thread may be gone before others, which keep the sockets open.
		threads, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "task/*"))
		if (state == "Z" || state == "X") && len(threads) <= 1 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		pids = append(pids, pid)
	}
	return pids
}

func (b *broker) signal(signal syscall.Signal) {
	syscall.Kill(-b.process.Process.Pid, signal)
}

// ended tells the exit status, once there is one.
func (b *broker) ended() (status int, ended bool) {
	select {
	case <-b.done:
		return b.process.ProcessState.ExitCode(), true
	default:
		return 0, false
	}
}
