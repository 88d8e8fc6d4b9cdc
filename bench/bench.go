package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// bench is one full measurement.
type bench struct {
	plan     *plan
	progress io.Writer
	this     build  // the tree of the bench
	base     string // commit to compare with, "" = none
	measured build
	self     string
	dir      string
	model    *process
	modelURL string
}

// prepare builds the measured programs and starts the model.
func prepare(ctx context.Context, p *plan, progress io.Writer) (_ *bench, err error) {
	b := &bench{plan: p, progress: progress}
	if b.this, err = thisBuild(ctx); err != nil {
		return nil, err
	}
	if b.base, err = b.baseCommit(ctx); err != nil {
		return nil, err
	}
	b.withoutCopilotKit()
	if err := b.compile(ctx, b.this); err != nil {
		return nil, err
	}
	b.measured = b.this
	if b.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "perdure-bench-"); err != nil {
		return nil, err
	}
	var base string
	if b.model, base, err = spawnRole(ctx, b.dir, "model", nil, b.self, "model"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	b.modelURL = base + "/v1"
	return b, nil
}

func (b *bench) close() {
	if err := b.model.stop(); err != nil {
		b.tell("%v", err)
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bench) tell(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}

// measureAll measures every system in the planned number of repetitions, and takes profiles at the
// end.
func (b *bench) measureAll(ctx context.Context) (*report, error) {
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), Commit: b.measured.commit, Machine: thisMachine(), Plan: b.plan, Repetitions: map[string][]measures{}}
	for i := range b.plan.Repetitions {
		for _, name := range b.plan.order(i) {
			b.tell("repetition %d of %d: %s", i+1, b.plan.Repetitions, name)
			m, err := b.measure(ctx, systemOf(name))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			r.Repetitions[name] = append(r.Repetitions[name], m)
		}
	}
	var err error
	if r.Pipelines, err = b.compareAll(ctx); err != nil {
		return nil, err
	}
	if r.Scales, err = b.measureScales(ctx); err != nil || b.plan.profiles == "" {
		return r, err
	}
	return r, b.profile(ctx)
}

// start starts a system on fresh data.
func (b *bench) start(ctx context.Context, s system, pprof bool, settings ...string) (*running, error) {
	dir, err := os.MkdirTemp(b.dir, s.name+"-")
	if err != nil {
		return nil, err
	}
	return s.start(ctx, &environment{
		bin: b.measured.bin, root: b.this.root, self: b.self, dir: dir, model: b.modelURL, pprof: pprof, settings: settings, pipelines: b.plan.definitions(),
	})
}

// measure makes one repetition for one system.
func (b *bench) measure(ctx context.Context, s system) (m measures, err error) {
	r, err := b.start(ctx, s, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	g := &gauge{running: r, bench: []int{os.Getpid(), b.model.cmd.Process.Pid}}
	m = measures{}
	if err := g.idle(ctx, m); err != nil {
		return nil, err
	}
	l := &load{target: r.target}
	for _, ph := range b.plan.phases {
		if err := g.phase(ctx, l, ph, m); err != nil {
			return nil, fmt.Errorf("phase %s: %w%s", ph.name, err, r.tails())
		}
	}
	return m, g.memory(m)
}
