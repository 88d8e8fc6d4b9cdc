package main

import "time"

// phase is one kind of load, measured as a whole.
type phase struct {
	name        string
	pace        pace
	concurrency int
	runs        int
	warmup      int // discarded runs at the start
	// spread is the time over which the first runs begin, so that they do not begin at the same
	// moment.
	spread time.Duration
	// every is the interval of waves; 0 = there are none. In a wave, concurrency runs begin at the
	// same moment.
	every time.Duration
}

// Names of the phases.
const (
	phaseFirst   = "first"   // time to first token, one run after another
	phaseLoad    = "load"    // runs per second and their cost
	phasePaced   = "paced"   // latency added to each token
	phaseLasting = "lasting" // as paced, with longer runs: the difference is the cost of a token
	phaseWaves   = "waves"   // latency added to each token while many runs begin at once
)

// waveInterval is the duration of a paced run: one wave streams at a time.
const waveInterval = tokensPerRun * tokenInterval

func fullPhases() []phase {
	return []phase{
		{name: phaseFirst, pace: instant, concurrency: 1, runs: 300, warmup: 50},
		{name: phaseLoad, pace: instant, concurrency: 50, runs: 1500, warmup: 300},
		{name: phasePaced, pace: paced, concurrency: 50, runs: 200, warmup: 50, spread: waveInterval},
		{name: phaseLasting, pace: lasting, concurrency: 50, runs: 200, spread: waveInterval},
		{name: phaseWaves, pace: paced, concurrency: 50, runs: 500, warmup: 50, every: waveInterval},
	}
}

func quickPhases() []phase {
	return []phase{
		{name: phaseFirst, pace: instant, concurrency: 1, runs: 60, warmup: 20},
		{name: phaseLoad, pace: instant, concurrency: 50, runs: 200, warmup: 50},
		{name: phasePaced, pace: paced, concurrency: 50, runs: 50, spread: time.Second},
		{name: phaseLasting, pace: lasting, concurrency: 50, runs: 50, spread: time.Second},
		{name: phaseWaves, pace: paced, concurrency: 50, runs: 100, every: waveInterval},
	}
}

// groups is the number of groups of users. Waves have two, which take turns: the runs of one wave may
// still stream when the next wave begins.
func (ph phase) groups() int {
	if ph.every > 0 {
		return 2
	}
	return 1
}

// users is the number of clients that make one run after another.
func (ph phase) users() int { return ph.concurrency * ph.groups() }

// begin returns when a user begins its n-th run, from 0, since the start of the phase. Without waves,
// a further run begins when the run before it has ended.
func (ph phase) begin(user, n int) time.Duration {
	if ph.every > 0 {
		return ph.every * time.Duration(user/ph.concurrency+n*ph.groups())
	}
	if n > 0 {
		return 0
	}
	return ph.spread * time.Duration(user) / time.Duration(ph.concurrency)
}
