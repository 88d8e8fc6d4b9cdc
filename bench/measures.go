package main

import (
	"time"
)

// measure is the name of one number.
type measure string

const (
	firstP50    measure = "first_token_p50_ms"
	firstP99    measure = "first_token_p99_ms"
	beforeP50   measure = "before_model_p50_ms"
	afterP50    measure = "after_model_p50_ms"
	runsPerS    measure = "runs_per_second"
	eventsPerS  measure = "events_per_second"
	loadedP50   measure = "first_token_loaded_p50_ms"
	loadedP99   measure = "first_token_loaded_p99_ms"
	cpuPerRuns  measure = "cpu_seconds_per_1000_runs"
	addedP50    measure = "added_per_token_p50_ms"
	addedP99    measure = "added_per_token_p99_ms"
	cpuPerToken measure = "cpu_us_per_paced_token"
	cpuMargin   measure = "cpu_us_per_further_token"
	waveP50     measure = "added_per_token_waves_p50_ms"
	waveP99     measure = "added_per_token_waves_p99_ms"
	memoryIdle  measure = "rss_idle_mib"
	idleAPI     measure = "rss_idle_api_mib"
	memoryEnd   measure = "rss_end_mib"
	memoryPeak  measure = "rss_peak_mib"
	othersLoad  measure = "other_load_cores"
)

// table has the shown form of each measure, in order.
var table = []struct {
	measure measure
	title   string
	digits  int
	ratio   bool // whether a comparison with the proxy is meaningful
}{
	{firstP50, "first token, p50, ms", 2, true},
	{firstP99, "first token, p99, ms", 2, true},
	{beforeP50, "… request to model's first token, p50, ms", 2, true},
	{afterP50, "… model's first token to client, p50, ms", 2, true},
	{runsPerS, "runs/s, 50 at a time", 0, true},
	{eventsPerS, "events/s, 50 at a time", 0, true},
	{loadedP50, "first token, 50 at a time, p50, ms", 1, true},
	{loadedP99, "first token, 50 at a time, p99, ms", 1, true},
	{cpuPerRuns, "CPU, s per 1,000 runs", 2, true},
	{addedP50, "added per token, 50 paced runs, p50, ms", 2, true},
	{addedP99, "added per token, 50 paced runs, p99, ms", 2, true},
	{waveP50, "added per token, 50 runs begin every 2 s, p50, ms", 2, true},
	{waveP99, "added per token, 50 runs begin every 2 s, p99, ms", 2, true},
	{cpuPerToken, "CPU, µs per paced token (all of the run)", 0, true},
	{cpuMargin, "CPU, µs per further token of a longer run", 0, true},
	{memoryIdle, "RSS idle, MiB", 0, true},
	{idleAPI, "… of it the API's, MiB", 0, false},
	{memoryEnd, "RSS at the end, MiB", 0, true},
	{memoryPeak, "RSS peak, MiB", 0, true},
	{othersLoad, "other load on the machine, cores", 2, false},
}

// measures are the numbers of one repetition of one system. Numbers that do not apply are absent.
type measures map[measure]float64

// add adds the numbers of a phase. The phase lasting needs those of the phase paced: the starts and the
// ends of runs cancel out in the difference of their costs.
func (m measures) add(ph phase, s *sample, used span, hasProcesses bool) {
	runs, seconds := float64(ph.runs), used.wall.Seconds()
	switch ph.name {
	case phaseFirst:
		after := make([]int64, len(s.first))
		for i := range after {
			after[i] = s.first[i] - s.before[i]
		}
		m[firstP50], m[firstP99] = millis(s.first, 0.5), millis(s.first, 0.99)
		m[beforeP50], m[afterP50] = millis(s.before, 0.5), millis(after, 0.5)
	case phaseLoad:
		m[runsPerS], m[eventsPerS] = runs/seconds, float64(s.events)/seconds
		m[loadedP50], m[loadedP99] = millis(s.first, 0.5), millis(s.first, 0.99)
		if hasProcesses {
			m[cpuPerRuns] = used.system.Seconds() * 1000 / runs
		}
	case phasePaced:
		m[addedP50], m[addedP99] = millis(s.added, 0.5), millis(s.added, 0.99)
		if hasProcesses {
			m[cpuPerToken] = float64(used.system/time.Microsecond) / (runs * tokensPerRun)
		}
	case phaseLasting:
		if hasProcesses {
			perRun := float64(used.system/time.Microsecond) / runs
			m[cpuMargin] = (perRun - m[cpuPerToken]*tokensPerRun) / (tokensLasting - tokensPerRun)
		}
	case phaseWaves:
		m[waveP50], m[waveP99] = millis(s.added, 0.5), millis(s.added, 0.99)
	}
	m[othersLoad] = max(m[othersLoad], used.others.Seconds()/seconds)
}

// millis returns a quantile of times in microseconds, in milliseconds.
func millis(microseconds []int64, q float64) float64 {
	return float64(quantile(microseconds, q)) / 1000
}

// medians returns the median of each measure over repetitions.
func medians(repetitions []measures) measures {
	all := map[measure][]float64{}
	for _, m := range repetitions {
		for name, value := range m {
			all[name] = append(all[name], value)
		}
	}
	out := measures{}
	for name, values := range all {
		out[name] = median(values)
	}
	return out
}
