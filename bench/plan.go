package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

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
}

// plan has the systems and loads to measure.
type plan struct {
	Repetitions int      `json:"repetitions"`
	Systems     []string `json:"systems"`
	// Scales are the sizes of the large loads, by name.
	Scales map[string]int `json:"scales,omitempty"`
	// Pipelines are the comparisons of pipelines with plain workflows, with their sizes, by name.
	Pipelines map[string]int `json:"pipelines,omitempty"`
	phases    []phase
	results   string // directory, "" = nowhere
	profiles  string // directory, "" = none
	quick     bool
}

// Names of the phases.
const (
	phaseFirst = "first" // time to first token, one run after another
	phaseLoad  = "load"  // runs per second and their cost
	phasePaced = "paced" // latency added to each token
)

func fullPhases() []phase {
	return []phase{
		{name: phaseFirst, pace: instant, concurrency: 1, runs: 300, warmup: 50},
		{name: phaseLoad, pace: instant, concurrency: 50, runs: 1500, warmup: 300},
		{name: phasePaced, pace: paced, concurrency: 50, runs: 200, warmup: 50, spread: tokensPerRun * tokenInterval},
	}
}

func quickPhases() []phase {
	return []phase{
		{name: phaseFirst, pace: instant, concurrency: 1, runs: 60, warmup: 20},
		{name: phaseLoad, pace: instant, concurrency: 50, runs: 200, warmup: 50},
		{name: phasePaced, pace: paced, concurrency: 50, runs: 50, spread: time.Second},
	}
}

func parsePlan(args []string, progress io.Writer) (*plan, error) {
	var p plan
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(progress)
	f.BoolVar(&p.quick, "quick", false, "a short measurement of a few minutes; writes no results")
	f.IntVar(&p.Repetitions, "repetitions", 0, "number of repetitions; 0 = 3, or 1 with -quick")
	f.StringVar(&p.results, "results", "results", `directory of the results; "" = write none`)
	f.StringVar(&p.profiles, "profile", "", "directory for CPU profiles of perdure dev, taken after the measurement")
	names := f.String("systems", strings.Join(systemNames(), ","), `systems to compare; "" = none`)
	scales := f.String("scales", namesOf(scaleAmounts()), `large loads to measure, as in "crowd=1000,parked"; "" = none`)
	pipelines := f.String("pipelines", namesOf(comparisonAmounts()), `pipelines to compare with plain workflows, as in "steps=50,map"; "" = none`)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if p.Scales, err = parseAmounts("scales", *scales, scaleAmounts(), p.quick); err != nil {
		return nil, err
	}
	if p.Pipelines, err = parseAmounts("pipelines", *pipelines, comparisonAmounts(), p.quick); err != nil {
		return nil, err
	}
	if p.Pipelines["steps"] > maxSteps {
		return nil, fmt.Errorf("-pipelines: a pipeline has at most %d steps more than %d", maxSteps, fewSteps)
	}
	if *names != "" {
		p.Systems = strings.Split(*names, ",")
	}
	for _, name := range p.Systems {
		if !slices.Contains(systemNames(), name) {
			return nil, fmt.Errorf("-systems: there is no %q", name)
		}
	}
	p.phases = fullPhases()
	if p.quick {
		p.phases, p.results = quickPhases(), ""
	}
	if p.Repetitions == 0 {
		p.Repetitions = 3
		if p.quick {
			p.Repetitions = 1
		}
	}
	return &p, nil
}

// order is the order of the systems in one repetition.
func (p *plan) order(repetition int) []string {
	names := slices.Clone(p.Systems)
	if repetition%2 == 1 {
		slices.Reverse(names)
	}
	return names
}
