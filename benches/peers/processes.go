package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The kernel counts CPU time in hundredths of a second, whatever its timer does.
const tick = 10 * time.Millisecond

// stats are the fields of /proc/PID/stat behind the command's name, for each process of a session.
func stats(session int) (all [][]string) {
	if session == 0 {
		return nil
	}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended meanwhile.
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 21 && fields[3] == strconv.Itoa(session) {
			all = append(all, fields)
		}
	}
	return all
}

func sum(session int, fields ...int) (sum int64) {
	for _, stat := range stats(session) {
		for _, field := range fields {
			value, _ := strconv.ParseInt(stat[field], 10, 64)
			sum += value
		}
	}
	return sum
}

// cpu is the time that a session's living processes have had, in user mode and in the kernel.
func cpu(session int) time.Duration { return time.Duration(sum(session, 11, 12)) * tick }

// settle waits until a session's processes have little to do, but no longer than that many seconds: a JVM never rests for long.
func settle(session, seconds int) {
	const little = 50 * time.Millisecond
	for range seconds {
		before := cpu(session)
		time.Sleep(time.Second)
		if cpu(session)-before < little {
			return
		}
	}
}

// memory is what a session's processes have in RAM.
func memory(session int) int64 { return sum(session, 21) * int64(os.Getpagesize()) }

// A usage is what a workload takes of the broker and of this process, from watch to its ends.
type usage struct {
	b              *bench
	broker, client time.Duration
	stop           func()
}

func (b *bench) watch() *usage {
	u := &usage{b: b, broker: cpu(b.session), client: ownCPU()}
	done := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			b.result.PeakBytes = max(b.result.PeakBytes, memory(b.session))
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	})
	u.stop = func() {
		close(done)
		watcher.Wait()
	}
	return u
}

// endClient is called after finish, which knows how long the workload took.
func (u *usage) endClient() {
	u.b.result.ClientCPU = (ownCPU() - u.client).Seconds() / u.b.result.Seconds
}

func (u *usage) end() {
	u.stop()
	spent := (cpu(u.b.session) - u.broker).Seconds()
	u.b.result.CPU = spent / u.b.result.Seconds
	// A gateway may have stored nothing, and groups have no bytes.
	if u.b.result.Bytes > 0 {
		u.b.result.CPUSecondsPerGB = spent / (float64(u.b.result.Bytes) / 1e9)
	}
}

func ownCPU() time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return 0
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano())
}
