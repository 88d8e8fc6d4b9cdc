package main

import (
	"errors"
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
	// Scales are the sizes of the scales, by name.
	Scales map[string]int `json:"scales,omitempty"`
	// Pipelines are the comparisons with plain workflows, with their sizes, by name.
	Pipelines map[string]int `json:"pipelines,omitempty"`
	base      string         // commit to compare with, "" = none
	phases    []phase
	results   string // directory, "" = nowhere
	profiles  string // directory, "" = none
	quick     bool
}

// parsePlan returns the plan of the command line. The error is flag.ErrHelp, or names the flag.
func parsePlan(args []string, progress io.Writer) (*plan, error) {
	var p plan
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(progress)
	f.BoolVar(&p.quick, "quick", false, "a short measurement of a few minutes; writes no results")
	f.StringVar(&p.base, "base", "", `commit to compare with; the systems are then "dev,apart", and large scales are left out`)
	f.IntVar(&p.Repetitions, "repetitions", 0, "number of repetitions; 0 = 3, or 1 with -quick. With -base the number of rounds, which is even; 0 = 6")
	f.StringVar(&p.results, "results", "results", `directory of the results; "" = write none`)
	f.StringVar(&p.profiles, "profile", "", "directory for CPU profiles of perdure dev, taken after the measurement")
	names := f.String("systems", strings.Join(systemNames(), ","), `systems to compare; "" = none`)
	scales := f.String("scales", namesOf(scaleAmounts(true)), `loads to measure, as in "crowd=1000,parked"; "" = none. -quick leaves out the large ones: `+namesOf(largeAmounts()))
	pipelines := f.String("pipelines", namesOf(comparisonAmounts()), `runs and pipelines to compare with plain workflows, as in "steps=50,map"; "" = none`)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if p.base != "" && !given["systems"] {
		*names = "dev,apart"
	}
	if (p.base != "" || p.quick) && !given["scales"] {
		*scales = namesOf(scaleAmounts(false))
	}
	if err := p.setAmounts(*scales, *pipelines); err != nil {
		return nil, err
	}
	if err := p.setSystems(*names); err != nil {
		return nil, err
	}
	return &p, p.setRepetitions()
}

// setAmounts sets the scales, the pipelines and the phases.
func (p *plan) setAmounts(scales, pipelines string) (err error) {
	if p.Scales, err = parseAmounts("scales", scales, scaleAmounts(true), p.quick); err != nil {
		return err
	}
	if p.Pipelines, err = parseAmounts("pipelines", pipelines, comparisonAmounts(), p.quick); err != nil {
		return err
	}
	if p.Pipelines["steps"] > maxSteps {
		return fmt.Errorf("-pipelines: a pipeline has at most %d steps more than %d", maxSteps, fewSteps)
	}
	p.phases = fullPhases()
	if p.quick {
		p.phases, p.results = quickPhases(), ""
	}
	return nil
}

// setSystems sets the systems by their names.
func (p *plan) setSystems(names string) error {
	if names != "" {
		p.Systems = strings.Split(names, ",")
	}
	for _, name := range p.Systems {
		if !slices.Contains(systemNames(), name) {
			return fmt.Errorf("-systems: there is no %q", name)
		}
	}
	return nil
}

// setRepetitions sets the default of the repetitions or rounds. Rounds are even, so that each build is
// the first one equally often.
func (p *plan) setRepetitions() error {
	switch {
	case p.Repetitions != 0:
	case p.base != "":
		p.Repetitions = minRounds
	case p.quick:
		p.Repetitions = 1
	default:
		p.Repetitions = 3
	}
	switch {
	case p.Repetitions < 1:
		return fmt.Errorf("-repetitions: %d is not positive", p.Repetitions)
	case p.base == "":
		return nil
	case p.profiles != "":
		return errors.New("-profile: takes no profiles with -base")
	case p.Repetitions < minRounds || p.Repetitions%2 == 1:
		return fmt.Errorf("-repetitions: with -base an even number, at least %d, not %d", minRounds, p.Repetitions)
	}
	return nil
}

// order is the order of the systems in one repetition.
func (p *plan) order(repetition int) []string {
	names := slices.Clone(p.Systems)
	if repetition%2 == 1 {
		slices.Reverse(names)
	}
	return names
}
