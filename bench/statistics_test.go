package main

import (
	"math"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]int64, 100)
	for i := range hundred {
		hundred[i] = int64(100 - i)
	}
	for _, test := range []struct {
		values []int64
		q      float64
		want   int64
	}{
		{nil, 0.5, 0},
		{[]int64{7}, 0.99, 7},
		{[]int64{3, 1, 2}, 0.5, 2},
		{[]int64{1, 2}, 0.5, 1},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := quantile(test.values, test.q); got != test.want {
			t.Errorf("quantile(%v, %v) = %d, want %d", test.values, test.q, got, test.want)
		}
	}
	if hundred[0] != 100 {
		t.Errorf("first value after quantile = %v, want 100: the order stays", hundred[0])
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	if got := median([]float64{9, 1, 2}); got != 2 {
		t.Errorf("median of three = %v, want 2", got)
	}
	if got := median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("median of four = %v, want 3", got)
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of none = %v, want NaN", got)
	}
}

func TestMediansOmitAbsentMeasures(t *testing.T) {
	t.Parallel()
	m := medians([]measures{{firstP50: 1}, {firstP50: 3, cpuPerRuns: 5}})
	if m[firstP50] != 2 || m[cpuPerRuns] != 5 {
		t.Errorf("medians = %v, want 2 and 5", m)
	}
	if _, ok := m[addedP50]; ok {
		t.Error("a measure appeared from nowhere")
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	got, err := parseStat([]byte("4711 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9"))
	if err != nil || got != 2*time.Second {
		t.Errorf("CPU time = %v, %v, want 2s", got, err)
	}
	if _, err := parseStat([]byte("4711 (short) S 1")); err == nil {
		t.Error("parseStat of half a line: got no error, want one")
	}
}

func TestCostOfAFurtherTokenIsThatOfLongerRuns(t *testing.T) {
	t.Parallel()
	const start, token = 5 * time.Millisecond, 200 * time.Microsecond
	used := func(runs, tokens int) span {
		return span{wall: time.Second, system: time.Duration(runs) * (start + time.Duration(tokens)*token)}
	}
	m := measures{}
	m.add(phase{name: phasePaced, runs: 200}, &sample{}, used(200, tokensPerRun), true)
	m.add(phase{name: phaseLasting, runs: 50}, &sample{}, used(50, tokensLasting), true)
	if got := m[cpuPerToken]; got != 250 {
		t.Errorf("CPU per token of the whole run = %v µs, want 250", got)
	}
	if got := m[cpuMargin]; got != 200 {
		t.Errorf("CPU per further token = %v µs, want 200: without the start and the end of a run", got)
	}
}
