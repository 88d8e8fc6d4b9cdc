package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// footprint is the resource use of a process at one moment.
type footprint struct {
	rss        float64 // bytes
	heap       float64 // bytes that Go has in use
	goroutines float64
	cpu        time.Duration
	at         time.Time
}

// footprint measures a process that serves metrics.
func (s *site) footprint(ctx context.Context, name string) (f footprint, err error) {
	p := s.process(name)
	rss, _, err := memoryOf(p.cmd.Process.Pid)
	if err != nil {
		return f, err
	}
	f.rss = float64(rss)
	if f.cpu, err = cpuOf(p.cmd.Process.Pid); err != nil {
		return f, err
	}
	figures, err := scrape(ctx, s.metrics[name])
	f.goroutines, f.heap, f.at = figures["go_goroutines"], figures["go_memstats_heap_inuse_bytes"], time.Now()
	return f, err
}

// cores returns how many cores a process used between two footprints.
func (f footprint) cores(since footprint) float64 {
	return (f.cpu - since.cpu).Seconds() / f.at.Sub(since.at).Seconds()
}

// noteFootprint measures a process and records its memory.
func (s *site) noteFootprint(ctx context.Context, name, when string) (footprint, error) {
	f, err := s.footprint(ctx, name)
	s.found(name+", RSS, "+when, f.rss/(1<<20), "MiB")
	if f.goroutines > 0 {
		s.found(name+", goroutines, "+when, f.goroutines, "")
	}
	return f, err
}

// scrape reads metrics in Prometheus's text format. A metric with labels is keyed by its whole
// text. Series that differ only in the labels of the instrumentation are not expected.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	if url == "" {
		return nil, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	figures := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		i := strings.LastIndexByte(lines.Text(), ' ')
		if value, err := strconv.ParseFloat(lines.Text()[i+1:], 64); err == nil && i > 0 {
			figures[lines.Text()[:i]] = value
		}
	}
	return figures, lines.Err()
}

// socketMemory returns the memory that the kernel uses for all TCP connections of the machine, in
// bytes: sent data that has not been read is there, and in no process.
func socketMemory() (float64, error) {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "TCP:" {
			continue
		}
		for i := 1; i+1 < len(fields); i += 2 {
			if fields[i] == "mem" {
				pages, err := strconv.Atoi(fields[i+1])
				return float64(pages * os.Getpagesize()), err
			}
		}
	}
	return 0, fmt.Errorf("sockstat: %q", text)
}
