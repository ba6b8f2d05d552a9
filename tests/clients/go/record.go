package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// A record, as a line of a file gives it: partition, offset, timestamp in ms, key, value, then name and value of each header, with tabs
// between them. Byte strings are base64; null is `-`.
type record struct {
	partition         int32
	offset, timestamp int64
	key, value        []byte
	headers           []header
}

type header struct {
	name  string
	value []byte
}

func readRecords(path string) ([]record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var records []record
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		r, err := parseRecord(strings.Split(lines.Text(), "\t"))
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(records)+1, err)
		}
		records = append(records, r)
	}
	return records, lines.Err()
}

func parseRecord(fields []string) (r record, err error) {
	if len(fields) < 5 || len(fields)%2 == 0 {
		return r, fmt.Errorf("%d fields", len(fields))
	}
	numbers := [3]int64{}
	for i := range numbers {
		if numbers[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return r, err
		}
	}
	r.partition, r.offset, r.timestamp = int32(numbers[0]), numbers[1], numbers[2]
	bytes := make([][]byte, len(fields)-3)
	for i, field := range fields[3:] {
		if bytes[i], err = decode(field); err != nil {
			return r, err
		}
	}
	r.key, r.value = bytes[0], bytes[1]
	for i := 2; i < len(bytes); i += 2 {
		r.headers = append(r.headers, header{string(bytes[i]), bytes[i+1]})
	}
	return r, nil
}

func writeRecords(path string, records []record) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	for _, r := range records {
		fmt.Fprintf(out, "%d\t%d\t%d\t%s\t%s", r.partition, r.offset, r.timestamp, encode(r.key), encode(r.value))
		for _, h := range r.headers {
			fmt.Fprintf(out, "\t%s\t%s", encode([]byte(h.name)), encode(h.value))
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}

// milliseconds gives the timestamp of a record, which is -1 if it has none.
func milliseconds(timestamp time.Time) int64 {
	if timestamp.IsZero() {
		return -1
	}
	return timestamp.UnixMilli()
}

func encode(b []byte) string {
	if b == nil {
		return "-"
	}
	return base64.StdEncoding.EncodeToString(b)
}

func decode(field string) ([]byte, error) {
	if field == "-" {
		return nil, nil
	}
	return base64.StdEncoding.DecodeString(field)
}
