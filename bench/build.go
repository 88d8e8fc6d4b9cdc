package main

import (
	"context"
	"path/filepath"
	"slices"
)

// product is the module that is measured.
const product = "github.com/perdure/perdure"

// build is one build of the measured module.
type build struct {
	commit string
	root   string // directory of the module
	bin    string // directory of its programs
}

// thisBuild is the build of the tree that the bench belongs to.
func thisBuild(ctx context.Context) (t build, err error) {
	if t.root, err = output(ctx, ".", "go", "list", "-m", "-f", "{{.Dir}}", product); err != nil {
		return t, err
	}
	t.bin = filepath.Join(t.root, "bin")
	t.commit, err = commitOf(ctx, t.root)
	return t, err
}

// program is a command that a system needs, with its package in the measured module.
type program struct{ name, pkg string }

// programs are the programs that each system needs.
var programs = map[string][]program{
	"dev":   {{"perdure", "./cmd/perdure"}},
	"apart": {{"api", "./cmd/api"}, {"worker", "./cmd/worker"}, {"bench-servers", "./e2e/servers"}},
}

// compile builds the programs of a build that the plan needs.
func (b *bench) compile(ctx context.Context, t build) error {
	for _, name := range b.plan.started() {
		for _, p := range programs[name] {
			b.tell("building %s of %s", p.name, t.commit)
			if _, err := output(ctx, t.root, "go", "build", "-o", filepath.Join(t.bin, p.name), p.pkg); err != nil {
				return err
			}
		}
	}
	return nil
}

// started returns the systems that the plan starts: those that it compares, and those of its pipelines
// and scales.
func (p *plan) started() []string {
	names := slices.Clone(p.Systems)
	if len(p.Pipelines) > 0 {
		names = append(names, "apart")
	}
	for _, s := range scales {
		if p.Scales[s.name] > 0 {
			names = append(names, s.system)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
