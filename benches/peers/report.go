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

// rowsOf are what is said of a workload.
func rowsOf(workload string) []row {
	kind, _, _ := strings.Cut(workload, "-")
	switch kind {
	case "latency", "rate":
		return []row{
			{workload, "p50 ms", func(r result) float64 { return r.P50 }},
			{workload, "p99 ms", func(r result) float64 { return r.P99 }},
			{workload, "p99.9 ms", func(r result) float64 { return r.P999 }},
		}
	case "commits":
		return []row{
			{workload, "1/s", func(r result) float64 { return r.PerSecond }},
			{workload, "broker CPU µs each", func(r result) float64 { return 1e6 * r.CPU / r.PerSecond }},
			{workload, "client cores", func(r result) float64 { return r.ClientCPU }},
		}
	case "join", "start":
		return []row{{workload, "ms", func(r result) float64 { return r.Seconds * 1000 }}}
	case "idle", "connections":
		return []row{
			{workload, "% of a core", func(r result) float64 { return 100 * r.CPU }},
			{workload, "KiB each", func(r result) float64 { return r.MemberBytes / 1024 }},
		}
	default:
		return []row{
			{workload, "MB/s", func(r result) float64 { return r.Megabytes }},
			{workload, "broker CPU s/GB", func(r result) float64 { return r.CPUSecondsPerGB }},
			{workload, "client cores", func(r result) float64 { return r.ClientCPU }},
		}
	}
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
		if r.Workload != disk && !slices.ContainsFunc(rows, func(known row) bool { return known.workload == r.Workload }) {
			rows = append(rows, rowsOf(r.Workload)...)
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
		{"peak memory, MB", func(broker string) string { return fmt.Sprint(peak(results, broker) / 1e6) }},
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

func peak(results []result, broker string) (bytes int64) {
	for _, r := range results {
		if r.Broker == broker {
			bytes = max(bytes, r.PeakBytes)
		}
	}
	return bytes
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
		if !strings.HasPrefix(r.Workload, "consume") && !strings.HasPrefix(r.Workload, "cold") {
			taken += r.Bytes
		}
	}
	return "-"
}
