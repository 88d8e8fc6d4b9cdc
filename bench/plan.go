package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

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
