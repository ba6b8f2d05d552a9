package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// settle waits until a session's processes have little to do, but no longer than a minute.
func settle(session int) {
	const little = 50 * time.Millisecond
	for range 60 {
		before := cpu(session)
		time.Sleep(time.Second)
		if cpu(session)-before < little {
			return
		}
	}
}

// memory is what a session's processes have in RAM.
func memory(session int) int64 { return sum(session, 21) * int64(os.Getpagesize()) }
