package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench is one full measurement.
type bench struct {
	plan     *plan
	progress io.Writer
	commit   string
	bin      string
	self     string
	dir      string
	model    *process
	modelURL string
}

// prepare builds the measured programs and starts the model.
func prepare(ctx context.Context, p *plan, progress io.Writer) (_ *bench, err error) {
	b := &bench{plan: p, progress: progress}
	root, err := output(ctx, ".", "go", "list", "-m", "-f", "{{.Dir}}", product)
	if err != nil {
		return nil, err
	}
	b.bin = filepath.Join(root, "bin")
	if b.commit, err = commitOf(ctx, root); err != nil {
		return nil, err
	}
	if err := b.build(ctx, root); err != nil {
		return nil, err
	}
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

// product is the module that is measured.
const product = "github.com/perdure/perdure"

// program is a command that a system needs, with its package in the measured module.
type program struct{ name, pkg string }

// programs are the programs that each system needs.
var programs = map[string][]program{
	"dev":   {{"perdure", "./cmd/perdure"}},
	"apart": {{"api", "./cmd/api"}, {"worker", "./cmd/worker"}, {"bench-servers", "./e2e/servers"}},
}

// build builds the programs; root is the directory of the measured module.
func (b *bench) build(ctx context.Context, root string) error {
	systems := b.plan.Systems
	if len(b.plan.Scales)+len(b.plan.Pipelines) > 0 && !slices.Contains(systems, "apart") {
		systems = append(slices.Clone(systems), "apart")
	}
	for _, name := range systems {
		for _, p := range programs[name] {
			b.tell("building %s", p.name)
			if _, err := output(ctx, root, "go", "build", "-o", filepath.Join(b.bin, p.name), p.pkg); err != nil {
				return err
			}
		}
	}
	return nil
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
	r := &report{Date: time.Now().UTC().Format(time.DateOnly), Commit: b.commit, Machine: thisMachine(), Plan: b.plan, Repetitions: map[string][]measures{}}
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
		bin: b.bin, self: b.self, dir: dir, model: b.modelURL, pprof: pprof, settings: settings, pipelines: b.plan.definitions(),
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
