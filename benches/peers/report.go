package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// reference is the broker that the others are compared with.
const reference = "kafka"

// disk is a workload that run.sh writes itself: `bytes` on disk for all that a broker took in the rounds up to here.
const disk = "disk"

// A row of the table: one quantity of one workload.
type row struct {
	workload, unit string
	of             func(result) float64
}

var latencies = []row{
	{"latency", "p50 ms", func(r result) float64 { return r.P50 }},
	{"latency", "p99 ms", func(r result) float64 { return r.P99 }},
	{"latency", "p99.9 ms", func(r result) float64 { return r.P999 }},
}

// report prints the medians of all rounds, and their ratio to the reference.
func report(out io.Writer, files []string) error {
	results, err := read(files)
	if err != nil {
		return err
	}
	var brokers []string
	var rows []row
	for _, r := range results {
		if !slices.Contains(brokers, r.Broker) {
			brokers = append(brokers, r.Broker)
		}
		isKnown := func(known row) bool { return known.workload == r.Workload }
		switch {
		case r.Workload == disk || slices.ContainsFunc(rows, isKnown):
		case r.Workload == "latency":
			rows = append(rows, latencies...)
		case strings.HasPrefix(r.Workload, "commits-"):
			rows = append(rows, row{r.Workload, "1/s", func(r result) float64 { return r.PerSecond }})
		case strings.HasPrefix(r.Workload, "join-"):
			rows = append(rows, row{r.Workload, "ms", func(r result) float64 { return r.Seconds * 1000 }})
		case strings.HasPrefix(r.Workload, "idle-"):
			rows = append(rows, row{r.Workload, "% of a core", func(r result) float64 { return 100 * r.CPU }},
				row{r.Workload, "KiB a member", func(r result) float64 { return r.MemberBytes / 1024 }})
		default:
			rows = append(rows, row{r.Workload, "MB/s", func(r result) float64 { return r.Megabytes }})
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")+"\t") }
	header := []string{"workload", "unit"}
	for _, broker := range brokers {
		header = append(header, broker)
		if broker != reference {
			header = append(header, "/"+reference)
		}
	}
	line(header...)
	for _, row := range rows {
		cells := []string{row.workload, row.unit}
		against := median(results, reference, row)
		for _, broker := range brokers {
			here := median(results, broker, row)
			cells = append(cells, fmt.Sprintf("%.2f", here))
			if broker != reference {
				cells = append(cells, ratio(here, against))
			}
		}
		line(cells...)
	}
	for _, sum := range []struct {
		title string
		of    func(string) string
	}{
		{"errors", func(broker string) string {
			return total(results, broker, func(r result) int64 { return r.Errors })
		}},
		{"retries", func(broker string) string {
			return total(results, broker, func(r result) int64 { return r.Retries })
		}},
		{"bytes on disk per byte", func(broker string) string { return diskRatio(results, broker) }},
	} {
		cells := []string{sum.title, ""}
		for _, broker := range brokers {
			cells = append(cells, sum.of(broker))
			if broker != reference {
				cells = append(cells, "")
			}
		}
		line(cells...)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.FirstError != "" {
			fmt.Fprintf(out, "%s, %s: %d errors, the first: %s\n", r.Broker, r.Workload, r.Errors, r.FirstError)
		}
	}
	return nil
}

func read(files []string) (results []result, err error) {
	for _, path := range files {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			var r result
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", path, err, lines.Text())
			}
			results = append(results, r)
		}
		if err := lines.Err(); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func median(results []result, broker string, row row) float64 {
	var values []float64
	for _, r := range results {
		if r.Broker == broker && r.Workload == row.workload {
			values = append(values, row.of(r))
		}
	}
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

func ratio(here, there float64) string {
	if here == 0 || there == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", here/there)
}

func total(results []result, broker string, of func(result) int64) string {
	var sum int64
	for _, r := range results {
		if r.Broker == broker {
			sum += of(r)
		}
	}
	return fmt.Sprint(sum)
}

// diskRatio compares what the disk line says with what the broker had taken when it was written.
func diskRatio(results []result, broker string) string {
	var taken int64
	for _, r := range results {
		if r.Broker != broker {
			continue
		}
		if r.Workload == disk {
			return ratio(float64(r.Bytes), float64(taken))
		}
		if !strings.HasPrefix(r.Workload, "consume") {
			taken += r.Bytes
		}
	}
	return "-"
}
