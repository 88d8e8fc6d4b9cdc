package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

const (
	// fewSteps is the number of steps of the small pipeline that is subtracted: the difference to
	// the larger pipeline is the cost of the further steps, without a run's start and end.
	fewSteps = 10
	maxSteps = 500 - fewSteps
	// itemsAtOnce is how many items of a map are active at a time.
	itemsAtOnce = 20
	expression  = "6*7"
)

// Rounds of comparisons; fewer with -quick.
const (
	stepRounds = 15
	itemRounds = 5
	fewRounds  = 3
)

func (d *duel) rounds(full int) int {
	if d.bench.plan.quick {
		return fewRounds
	}
	return full
}

// definitions returns the pipelines that are measured.
func (p *plan) definitions() map[string]string {
	return map[string]string{
		"few": pipelineOf("few", fewSteps), "many": pipelineOf("many", fewSteps+p.Pipelines["steps"]),
		"each": fmt.Sprintf("name: each\ntools: [calculate]\nsteps:\n- {name: all, map: {items: state.items, concurrency: %d, steps: [{name: value, tool: calculate, args: {expression: \"${item}\"}}]}}\n", itemsAtOnce),
	}
}

// pipelineOf returns an agent with the given number of steps, each of which calls a tool that
// answers at once.
func pipelineOf(name string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\ntools: [calculate]\nsteps:\n", name)
	for i := range n {
		fmt.Fprintf(&b, "- {name: s%d, tool: calculate, args: {expression: %q}}\n", i, expression)
	}
	return b.String()
}

// steps measures the cost that one step adds to a run.
func steps(ctx context.Context, d *duel, n int) error {
	pipeline := func(agent string, steps int) side {
		return func(ctx context.Context) (outcome, error) { return d.walk(ctx, agent, "{}", "TOOL_CALL_RESULT", steps) }
	}
	plain := func(steps int) side {
		return func(ctx context.Context) (outcome, error) { return d.plainly(ctx, "steps", plainWork{Count: steps}) }
	}
	all, err := d.alternate(ctx, d.rounds(stepRounds), pipeline("few", fewSteps), plain(fewSteps), pipeline("many", fewSteps+n), plain(fewSteps+n))
	if err != nil {
		return err
	}
	for _, row := range []struct {
		what, unit string
		of         func(outcome) float64
		average    func([]outcome, func(outcome) float64) float64
	}{
		{"a step", "ms", outcome.wallMillis, middle},
		{"… CPU of all processes", "ms", outcome.cpuMillis, mean},
		{"… history", "bytes", outcome.historyBytes, middle},
		{"… history, events", "", outcome.historyEvents, middle},
	} {
		each := func(few, many []outcome) float64 {
			return (row.average(many, row.of) - row.average(few, row.of)) / float64(n)
		}
		d.note(row.what, row.unit, each(all[0], all[2]), each(all[1], all[3]))
	}
	d.note(fmt.Sprintf("a run of %d steps", fewSteps), "ms", middle(all[0], outcome.wallMillis), middle(all[1], outcome.wallMillis))
	return nil
}

// items measures a map whose items are child workflows.
func items(ctx context.Context, d *duel, n int) error {
	expressions := strings.Repeat(fmt.Sprintf("%q,", expression), n)
	state := fmt.Sprintf(`{"items":[%s]}`, strings.TrimSuffix(expressions, ","))
	work := plainWork{Count: n, AtOnce: itemsAtOnce}
	all, err := d.alternate(ctx, d.rounds(itemRounds),
		func(ctx context.Context) (outcome, error) { return d.walk(ctx, "each", state, "SUBAGENT_FINISHED", n) },
		func(ctx context.Context) (outcome, error) { return d.plainly(ctx, "items", work) })
	if err != nil {
		return err
	}
	d.note("all items", "s", middle(all[0], outcome.wallMillis)/1000, middle(all[1], outcome.wallMillis)/1000)
	d.note("CPU for an item, of all processes", "ms", mean(all[0], outcome.cpuMillis)/float64(n), mean(all[1], outcome.cpuMillis)/float64(n))
	d.note("history of the workflow with the items, for each", "bytes", middle(all[0], outcome.historyBytes)/float64(n), middle(all[1], outcome.historyBytes)/float64(n))
	return nil
}

// walk makes a run of steps, which has to show an event a given number of times.
func (d *duel) walk(ctx context.Context, agent, state, event string, times int) (outcome, error) {
	seen, wanted := 0, fmt.Appendf(nil, `"type":%q`, event)
	o, err := d.perdure(ctx, agent, state, func(event []byte) error {
		if bytes.Contains(event, wanted) {
			seen++
		}
		return nil
	})
	if err == nil && seen != times {
		return o, fmt.Errorf("%w: %d × %s instead of %d", errRun, seen, event, times)
	}
	return o, err
}

// plainly executes a plain workflow, which has to do all of its work.
func (d *duel) plainly(ctx context.Context, workflow string, work plainWork) (outcome, error) {
	return d.temporally(ctx, workflow, work, func(_ *outcome, done plainDone) error {
		if done.Count != work.Count {
			return fmt.Errorf("%w: %d of %d", errRun, done.Count, work.Count)
		}
		return nil
	})
}
