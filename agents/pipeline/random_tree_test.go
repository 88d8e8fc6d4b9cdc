package pipeline_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

// treeGenerator makes random trees with all kinds of steps.
type treeGenerator struct {
	*rand.Rand
	left int // steps that may still be added
	n    int // steps so far
	undo bool
	maps int // enclosing maps
}

// steps returns at least one random step.
func (g *treeGenerator) steps(depth int) []agents.Step {
	steps := []agents.Step{g.step(depth)}
	for g.left > 0 && g.IntN(3) > 0 {
		steps = append(steps, g.step(depth))
	}
	return steps
}

// step returns a random step.
func (g *treeGenerator) step(depth int) agents.Step {
	g.left--
	g.n++
	s := agents.Step{Name: fmt.Sprintf("s%d", g.n)}
	kind := g.IntN(10)
	if depth >= 4 || g.left <= 0 {
		kind = g.IntN(4)
	}
	switch kind {
	case 0:
		s.Agent = &agents.AgentStep{Instructions: "x"}
		s.Output = &agents.Output{Schema: json.RawMessage(`{"type":"object","required":["n"]}`)}
	case 1:
		s.Tool, s.Args = "t", map[string]any{"text": "${input.text} ${state.n}", "item": g.item()}
	case 2:
		s.Approve = &agents.ApproveStep{Message: "May I?"}
	case 3:
		s.Set = []agents.Op{{Path: "/n", Value: "${state.n + 1}"}}
	case 4:
		s.Steps = g.steps(depth + 1)
	case 5:
		s.Route = []agents.Case{{When: "state.n % 2 == 0", Steps: g.steps(depth + 1)}, {Steps: g.steps(depth + 1)}}
	case 6:
		s.Loop = &agents.LoopStep{Max: 1 + g.IntN(3), Until: "round == 2", Steps: g.steps(depth + 1)}
	case 7:
		s.Parallel = &agents.ParallelStep{Steps: g.steps(depth + 1), OnError: g.onError()}
	case 8, 9:
		g.maps++
		s.Map = &agents.MapStep{Items: "[state.n, state.n + 1, 3]", OnError: g.onError(), Steps: g.steps(depth + 1)}
		g.maps--
	}
	g.decorate(&s, depth)
	return s
}

// item returns an expression for the branch that a step is in.
func (g *treeGenerator) item() any {
	if g.maps == 0 {
		return nil
	}
	return "${item}"
}

// onError returns a random way to handle an error.
func (g *treeGenerator) onError() string {
	if g.IntN(2) == 0 {
		return agents.OnErrorContinue
	}
	return ""
}

// decorate adds random options to a step.
func (g *treeGenerator) decorate(s *agents.Step, depth int) {
	if g.IntN(5) == 0 {
		s.When = "state.n % 3 != 1"
	}
	if g.IntN(4) == 0 {
		s.Retry = &agents.Retry{Attempts: 2, Interval: time.Minute}
	}
	if g.IntN(5) == 0 {
		s.Timeout = time.Duration(1+g.IntN(300)) * time.Second
	}
	switch g.IntN(6) {
	case 0:
		s.OnError.Continue = true
	case 1:
		if depth < 4 && g.left > 0 {
			s.OnError.Steps = g.steps(depth + 1)
		}
	}
	if g.undo && s.Set == nil && g.IntN(3) == 0 && !s.Compensates() {
		s.Compensate = &agents.Step{Tool: "undo"}
		if s.Tool != "" {
			s.Compensate.Args = map[string]any{"of": "${steps." + s.Name + ".x}", "item": g.item()}
		}
	}
}

// randomTree returns the definition of an agent with random steps.
func randomTree(seed uint64) *agents.Definition {
	r := rand.New(rand.NewPCG(seed, 1))
	for {
		g := &treeGenerator{Rand: r, left: 3 + r.IntN(20), undo: r.IntN(2) == 0}
		d := &agents.Definition{Name: "a", Model: "p/m", Tools: []string{"*"}, Steps: g.steps(1)}
		if d.Validate() == nil {
			return d
		}
	}
}

// runRandomly interprets a tree with random failures.
func runRandomly(t *testing.T, d *agents.Definition, seed uint64, straight bool) (*fixture, *pipeline.Failure) {
	f := setupDefinition(t, d)
	r := rand.New(rand.NewPCG(seed, 2))
	f.keepsPositions, f.state = straight, json.RawMessage(`{"n":0}`)
	if r.IntN(3) == 0 {
		f.cancelAfter = 1 + r.IntN(10)
	}
	badness := r.IntN(60)
	c := &actionLog{w: f, made: map[string]loggedAction{}}
	f.eventOf = func(a pipeline.Action, _ int) (ev pipeline.Event) {
		defer func() { c.check(a, ev.Kind == pipeline.EventDone) }()
		f.now = f.now.Add(time.Duration(r.IntN(20)) * time.Second)
		bad := r.IntN(100) < badness
		switch {
		case a.Approve != nil:
			return doneEvent(fmt.Sprintf(`{"approved":%t}`, !bad))
		case a.Agent != nil && bad:
			return doneEvent(`"nothing"`)
		case a.Agent != nil:
			return doneEvent(`"{\"n\":1}"`)
		case bad:
			return failedEvent("broken")
		}
		return doneEvent(fmt.Sprintf(`{"x":%q}`, a.Path))
	}
	failure := f.run()
	if f.cancelAfter > 0 && len(f.executedActions) >= f.cancelAfter { // a cancel may arrive during a compensation
		path, _, _ := strings.Cut(f.executedActions[f.cancelAfter-1], " ")
		delete(c.made, strings.TrimSuffix(path, "~undo"))
	}
	if failure != nil && failure.Code != "limit_compensations" && len(c.made) > 0 {
		t.Errorf("seed %d: actions without compensation = %v, want none", seed, c.made)
	}
	return f, failure
}

// actionLog records the calls of a tree.
type actionLog struct {
	w    *fixture
	made map[string]loggedAction // calls to undo if the tree fails, by path
}

// loggedAction is the arguments of a tool call.
type loggedAction struct {
	Of   string `json:"of"` // the path of the call that a compensation undoes
	Item any    `json:"item"`
}

// check records a call and reports whether it succeeded. A compensation must have the result and
// the item of its call, in whichever round, attempt and branch that call was.
func (c *actionLog) check(a pipeline.Action, ended bool) {
	if a.Tool == nil {
		return
	}
	var args loggedAction
	if err := json.Unmarshal(a.Tool.Args, &args); err != nil {
		c.w.t.Fatal(err)
	}
	if a.Tool.Tool == "t" {
		if s := pipeline.StepAt(c.w.definition, a.Path); ended && s.Compensate != nil {
			c.made[a.Path] = args
		}
		return
	}
	path := strings.TrimSuffix(a.Path, "~undo")
	did, there := c.made[path]
	if pipeline.StepAt(c.w.definition, path).Tool == "" {
		return
	}
	if !there || args.Of != path || args.Item != did.Item {
		c.w.t.Errorf("compensation %s: got %+v, want it for %+v (%t)", a.Path, args, did, there)
	}
	delete(c.made, path)
}

// TestRandomTrees: for random trees and failures the interpreter ends, steps finish in the order in
// which they started, no path occurs twice, and a stored tree position continues in the same way.
// The fixture checks all but the last.
func TestRandomTrees(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(1000) {
		d := randomTree(seed)
		f, failure := runRandomly(t, d, seed, false)
		again, g := runRandomly(t, d, seed, true)
		for name, differ := range map[string]string{
			"did": cmp.Diff(f.executedActions, again.executedActions), "step events": cmp.Diff(f.stepEvents, again.stepEvents), "state": cmp.Diff(string(f.state), string(again.state)), "failure": cmp.Diff(failure, g),
		} {
			if differ != "" {
				t.Errorf("seed %d: %s without storing the position differs, want the same: %s", seed, name, differ)
			}
		}
		for _, b := range f.begins { // another run may begin after each finished step
			if strings.Contains(b.path, "/") {
				kinds["begins in another step"]++
			}
			_, err := pipeline.Advance(d, pipeline.TreePosition{After: b.path}, pipeline.Event{Kind: pipeline.EventBegun}, pipeline.Env{Input: f.input, Messages: f.msgs, State: b.state, Now: f.now})
			if err != nil || !pipeline.HasStepAt(d, b.path) {
				t.Errorf("seed %d: a tree that begins after %s: got %v, want an action", seed, b.path, err)
			}
		}
		if failure == nil {
			kinds["went well"]++
		} else {
			kinds[failure.Code]++
		}
		if t.Failed() {
			text, _ := d.YAML()
			t.Fatalf("seed %d fails with %+v:\n%s\n%v", seed, failure, text, f.executedActions)
		}
	}
	for _, kind := range []string{"went well", "broken", "rejected", "timeout", "invalid_output", "cancelled", "begins in another step"} {
		if kinds[kind] == 0 {
			t.Errorf("numbers of failures = %v, want some of %s", kinds, kind)
		}
	}
}

// TestRandomTreesKeepTheirYAML: a definition is the same in Go, in YAML and in its stored form.
func TestRandomTreesKeepTheirYAML(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		d := randomTree(seed)
		file, err := d.YAML()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := agents.Parse("a.yaml", file)
		if err != nil {
			t.Fatalf("%v in\n%s", err, file)
		}
		stored, err := agents.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := agents.Decode(stored)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Revision() != d.Revision() || decoded.Revision() != d.Revision() {
			t.Fatalf("seed %d: revisions %s, %s from YAML and %s stored, want the same of\n%s", seed, d.Revision(), parsed.Revision(), decoded.Revision(), file)
		}
		if diff := cmp.Diff(parsed, decoded, cmpopts.IgnoreUnexported(agents.Output{})); diff != "" {
			t.Fatalf("seed %d: stored (-YAML +stored):\n%s", seed, diff)
		}
	}
}
