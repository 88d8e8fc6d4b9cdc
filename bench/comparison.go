package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/client"
)

// comparison compares pipelines with plain Temporal workflows that do the same work, on the same
// servers, in turns.
type comparison struct {
	amount
	run func(ctx context.Context, d *duel, n int) error
}

var comparisons = []comparison{
	{amount{"text", "A text run, against a workflow of one activity", 100, 20}, text},
	{amount{"steps", "A pipeline of tool steps, against an activity for each", 100, 30}, steps},
	{amount{"map", "A map, 20 at a time, against child workflows of one activity", 500, 50}, items},
	{amount{"subagents", "Agents that hand work to another, against a child workflow", 100, 20}, subagents},
}

func comparisonAmounts() []amount {
	all := make([]amount, len(comparisons))
	for i, c := range comparisons {
		all[i] = c.amount
	}
	return all
}

// versus is one number of a comparison.
type versus struct {
	What    string  `json:"what"`
	Unit    string  `json:"unit,omitempty"`
	Perdure float64 `json:"perdure"`
	Plain   float64 `json:"plain"`
}

// duel is the setup of comparisons: API, worker and servers, and a worker of plain workflows.
type duel struct {
	*running
	bench    *bench
	temporal client.Client
	plain    *process
	rows     []versus
	next     int // number in the name of the next execution
}

// outcome is the cost of one execution.
type outcome struct {
	wall time.Duration // for the client
	cpu  time.Duration // of the processes that execute it, until it is closed
	// bytes and events are those of the workflow's history, without its children's histories.
	bytes, events int64
	// handed is the time from an agent's last word to the first word of the agent that it delegates
	// to.
	handed time.Duration
}

// side is one of the two sides that do the same work.
type side func(ctx context.Context) (outcome, error)

// compareAll makes each planned comparison on fresh data.
func (b *bench) compareAll(ctx context.Context) (map[string][]versus, error) {
	all := map[string][]versus{}
	for _, c := range comparisons {
		n := b.plan.Pipelines[c.name]
		if n == 0 {
			continue
		}
		b.tell("%s: %d", c.name, n)
		rows, err := b.compare(ctx, c, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		all[c.name] = rows
	}
	return all, nil
}

// compare makes one comparison of size n on fresh data.
func (b *bench) compare(ctx context.Context, c comparison, n int) (_ []versus, err error) {
	r, err := b.start(ctx, systemOf("apart"), false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	d := &duel{running: r, bench: b}
	if d.temporal, err = r.dial(ctx); err != nil {
		return nil, err
	}
	defer d.temporal.Close()
	dir, err := os.MkdirTemp(b.dir, "plain-")
	if err != nil {
		return nil, err
	}
	env := []string{"TEMPORAL_ADDRESS=" + r.temporal, "TEMPORAL_NAMESPACE=" + r.namespace, "OPENAI_BASE_URL=" + b.modelURL}
	if d.plain, _, err = spawnRole(ctx, dir, "plain", env, b.self, "plain"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.plain.stop()) }()
	if err := c.run(ctx, d, n); err != nil {
		return nil, fmt.Errorf("%w%s\n--- plain\n%s", err, r.tails(), d.plain.tail())
	}
	return d.rows, nil
}

// alternate executes the sides in turns, one execution at a time. The order is reversed in each
// round. A first round, for warmup, does not count.
func (d *duel) alternate(ctx context.Context, rounds int, sides ...side) ([][]outcome, error) {
	all := make([][]outcome, len(sides))
	for round := range rounds + 1 {
		for i := range sides {
			if round%2 == 1 {
				i = len(sides) - 1 - i
			}
			o, err := sides[i](ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				all[i] = append(all[i], o)
			}
		}
	}
	return all, nil
}

// took executes something and measures it. CPU time counts until the workflow has closed, which
// happens after its client has the result.
func (d *duel) took(ctx context.Context, workflow string, processes []*process, do func(o *outcome) error) (o outcome, err error) {
	before, err := cpuOfAll(processes)
	if err != nil {
		return o, err
	}
	begun := time.Now()
	if err := do(&o); err != nil {
		return o, err
	}
	o.wall = time.Since(begun)
	if err := d.temporal.GetWorkflow(ctx, workflow, "").Get(ctx, nil); err != nil {
		return o, err
	}
	after, err := cpuOfAll(processes)
	if err != nil {
		return o, err
	}
	o.cpu = after - before
	now, err := d.temporal.DescribeWorkflowExecution(ctx, workflow, "")
	o.bytes, o.events = now.GetWorkflowExecutionInfo().GetHistorySizeBytes(), now.GetWorkflowExecutionInfo().GetHistoryLength()
	return o, err
}

// wallMillis and the names after it are numbers of outcomes.
func (o outcome) wallMillis() float64    { return o.wall.Seconds() * 1000 }
func (o outcome) cpuMillis() float64     { return o.cpu.Seconds() * 1000 }
func (o outcome) handedMillis() float64  { return o.handed.Seconds() * 1000 }
func (o outcome) historyBytes() float64  { return float64(o.bytes) }
func (o outcome) historyEvents() float64 { return float64(o.events) }

// middle returns the median of one number of outcomes.
func middle(outcomes []outcome, of func(outcome) float64) float64 {
	values := make([]float64, len(outcomes))
	for i, o := range outcomes {
		values[i] = of(o)
	}
	return median(values)
}

// mean is for CPU time, which is counted in steps of 10 ms: over many executions the sum of the
// steps is accurate.
func mean(outcomes []outcome, of func(outcome) float64) float64 {
	sum := 0.0
	for _, o := range outcomes {
		sum += of(o)
	}
	return sum / float64(len(outcomes))
}

// note adds one number of both sides to the results.
func (d *duel) note(what, unit string, perdure, plain float64) {
	d.rows = append(d.rows, versus{what, unit, perdure, plain})
	d.bench.tell("  %s: %.4g %s, plain %.4g: ×%.2g", what, perdure, unit, plain, perdure/plain)
}

// perdure executes a run of an agent.
func (d *duel) perdure(ctx context.Context, agent, state string, see func(event []byte) error) (outcome, error) {
	d.next++
	thread := fmt.Sprintf("duel-%d", d.next)
	return d.took(ctx, "thread/default/"+thread, d.processes, func(*outcome) error {
		_, err := d.runToEnd(ctx, agent, runBody(thread, state), see)
		return err
	})
}

// temporally executes a plain workflow, which returns the work that it has done.
func (d *duel) temporally(ctx context.Context, workflow string, work plainWork, see func(o *outcome, done plainDone) error) (outcome, error) {
	d.next++
	id := fmt.Sprintf("plain-%d", d.next)
	return d.took(ctx, id, []*process{d.process("servers"), d.plain}, func(o *outcome) error {
		run, err := d.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: plainQueue}, workflow, work)
		if err != nil {
			return err
		}
		var done plainDone
		if err := run.Get(ctx, &done); err != nil {
			return err
		}
		return see(o, done)
	})
}
