package workflows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/runs"
)

// treeGenerator makes small random step trees.
type treeGenerator struct {
	*rand.Rand
	remaining, count int
	compensates      bool
	concurrency      int
}

// steps returns at least one random step.
func (g *treeGenerator) steps(depth int) []agents.Step {
	steps := []agents.Step{g.step(depth)}
	for g.remaining > 0 && g.IntN(3) > 0 {
		steps = append(steps, g.step(depth))
	}
	return steps
}

// step returns a random step.
func (g *treeGenerator) step(depth int) agents.Step {
	g.remaining, g.count = g.remaining-1, g.count+1
	s := agents.Step{Name: fmt.Sprintf("s%d", g.count)}
	kind := g.IntN(8)
	if depth > 3 || g.remaining <= 0 {
		kind = g.IntN(4)
	}
	onError := []string{"", agents.OnErrorContinue}[g.IntN(2)]
	switch kind {
	case 0:
		s.Approve = &agents.ApproveStep{Message: "May I?"}
	case 1:
		s.Tool = "t"
	case 2, 3:
		s.Agent = &agents.AgentStep{Name: "other"}
	case 4:
		s.Steps = g.steps(depth + 1)
	case 5:
		s.Loop = &agents.LoopStep{Max: 2, Steps: g.steps(depth + 1)}
	case 6:
		s.Parallel = &agents.ParallelStep{Steps: g.steps(depth + 1), OnError: onError, Concurrency: g.concurrency}
	case 7:
		s.Map = &agents.MapStep{Items: "[1, 2, 3]", OnError: onError, Steps: g.steps(depth + 1), Concurrency: g.concurrency}
	}
	switch {
	case g.IntN(6) == 0:
		s.OnError.Continue = true
	case g.IntN(6) == 0 && depth < 4 && g.remaining > 0:
		s.OnError.Steps = g.steps(depth + 1)
	}
	if g.IntN(4) == 0 {
		s.Retry = &agents.Retry{Attempts: 2, Interval: time.Minute}
	}
	if g.compensates && g.IntN(2) == 0 && !s.Compensates() {
		s.Compensate = &agents.Step{Tool: "undo"}
	}
	return s
}

// randomTree returns the definition of an agent with random steps.
func randomTree(seed uint64, concurrency int) *agents.Definition {
	for r := rand.New(rand.NewPCG(seed, 1)); ; {
		g := &treeGenerator{Rand: r, remaining: 2 + r.IntN(10), compensates: r.IntN(2) == 0, concurrency: concurrency}
		d := &agents.Definition{Name: "a", Model: "p/m", Tools: []string{"*"}, Steps: g.steps(1)}
		if d.Validate() == nil {
			return d
		}
	}
}

// outcomeByPath returns the outcome of each step by its path. The outcome of a path never changes.
func outcomeByPath(seed uint64, badness uint32) func(string) (pipeline.Event, error) {
	return func(path string) (pipeline.Event, error) {
		h := fnv.New32a()
		fmt.Fprint(h, seed, path)
		switch n := h.Sum32() % 200; {
		case n >= 2*badness:
			return doneEvent(`"ok"`), nil
		case n >= badness:
			return failedEvent("broken"), nil
		default:
			return pipeline.Event{}, errors.New("gone")
		}
	}
}

// simulate interprets a tree without a workflow, one action at a time. It cancels at the path
// cancel.
func (f *pipelineFixture) simulate(cancel string, branch []pipeline.BranchRef, items []json.RawMessage, ended pipeline.Ended) *pipeline.Failure {
	at, ev := pipeline.TreePosition{Branch: branch}, pipeline.Event{Kind: pipeline.EventBegun}
	for {
		m, err := pipeline.Advance(f.definition, at, ev, pipeline.Env{State: f.state, Items: items, Now: time.Unix(1, 0), Ended: ended, Recall: f.storedEntry})
		if err != nil {
			f.t.Fatal(err)
		}
		f.storeAdvanced(m)
		f.seq++
		f.recordChanges(m.Changes)
		at = m.Position
		switch a := m.Action; {
		case a.Sleep > 0:
			ev = pipeline.Event{Kind: pipeline.EventWoken}
		case a.Branches != nil:
			ev = f.simulateBranches(cancel, at, a, items)
		case a.Agent == nil && a.Tool == nil && a.Approve == nil:
			return a.Failed
		default:
			ev = f.simulateAction(a, cancel)
		}
	}
}

// simulateAction returns the event of an action, as the workflow's activities would.
func (f *pipelineFixture) simulateAction(a pipeline.Action, cancel string) pipeline.Event {
	f.executedPaths = append(f.executedPaths, a.Path)
	ev, err := f.executeStep(a.Path)
	switch {
	case a.Path == cancel:
		return cancelledEvent
	case a.Approve != nil:
		return doneEvent(fmt.Sprintf(`{"approved":%t}`, err == nil && ev.Kind == pipeline.EventDone))
	case err != nil:
		ev = failedEvent(err.Error())
	}
	f.eventOf[a.Path] = ev
	return ev
}

// simulateBranches returns the event of branches, which run one after another.
func (f *pipelineFixture) simulateBranches(cancel string, at pipeline.TreePosition, a pipeline.Action, items []json.RawMessage) pipeline.Event {
	ev := pipeline.Event{Kind: pipeline.EventJoined, Items: a.Branches.Items, Ends: make([]uint64, a.Branches.Count)}
	for i := range a.Branches.Count {
		var item json.RawMessage
		if a.Branches.Items != nil {
			item = a.Branches.Items[i]
		}
		var ended pipeline.Ended
		if ends := a.Branches.Ends; ends != nil && ends[i] > 0 {
			ended = f.stored[ends[i]].ended
		}
		failure := f.simulate(cancel, at.Into(a.Path, i), append(slices.Clone(items), item), ended)
		if failure == nil {
			if len(f.stored[f.seq].ended.Undo) > 0 {
				ev.Ends[i] = f.seq
			}
			continue
		}
		ev.Branches = append(ev.Branches, pipeline.BranchFailure{Index: i, Failure: *failure})
		if failure.Code == "cancelled" {
			ev.Kind, ev.Failure = pipeline.EventCancelled, failure
			return ev
		}
		if a.Branches.Stop {
			break
		}
	}
	return ev
}

// TestWorkflowAgreesWithInterpreterOnRandomTrees: for random trees, failures, interrupts, cancels,
// continue-as-new, failed advances and lost answers, a workflow whose branches run one at a time takes the
// same steps in the same order as the interpreter alone, with the same outcome.
func TestWorkflowAgreesWithInterpreterOnRandomTrees(t *testing.T) {
	t.Parallel()
	ends := map[string]int{}
	for seed := range uint64(200) {
		d := randomTree(seed, 1)
		alone, fixture := setupDefinition(t, d), setupDefinition(t, d)
		r := rand.New(rand.NewPCG(seed, 2))
		alone.executeStep = outcomeByPath(seed, r.Uint32N(60))
		cancel := ""
		alone.simulate("", nil, nil, pipeline.Ended{})
		if places := slices.Sorted(maps.Keys(alone.eventOf)); r.IntN(3) == 0 && len(places) > 0 { // again, cancelled at one of the paths
			cancel = places[r.IntN(len(places))]
		}
		nextFixture := setupDefinition(t, d)
		nextFixture.executeStep = alone.executeStep
		failure := nextFixture.simulate(cancel, nil, nil, pipeline.Ended{})
		fixture.executeStep = func(path string) (pipeline.Event, error) {
			if path == cancel {
				return cancelledEvent, nil
			}
			return alone.executeStep(path)
		}
		fixture.historyIsLong = func() bool { return r.IntN(8) == 0 }
		fixture.loseAnswer = func(runs.Step) bool { return r.IntN(4) == 0 }
		fixture.failBeforeAdvance = func(runs.AdvanceInput) error {
			if r.IntN(8) == 0 {
				return retryAfter(runs.ErrorLogUnavailable, 0)
			}
			return nil
		}
		result := fixture.runToEnd(stepsInput())
		end := "success"
		switch {
		case failure != nil && failure.Code == "cancelled":
			end = failure.Code
		case failure != nil:
			end = "error " + failure.Code
		}
		ends[end]++
		for name, differ := range map[string]string{
			"paths": cmp.Diff(nextFixture.executedPaths, fixture.executedPaths, cmpopts.EquateEmpty()), "end": cmp.Diff(end, strings.TrimSpace(string(result.Outcome)+" "+result.Code)),
		} {
			if differ != "" {
				t.Errorf("%s (-want of the interpreter +got of the workflow): %s", name, differ)
			}
		}
		if cancel == "" {
			if diff := cmp.Diff(nextFixture.stepEvents, fixture.stepEvents); diff != "" || !equalJSON(string(nextFixture.state), string(fixture.state)) {
				t.Errorf("state: got %s, want %s; step events (-want +got): %s", fixture.state, nextFixture.state, diff)
			}
		}
		if t.Failed() {
			text, _ := d.YAML()
			t.Fatalf("seed %d, cancelled at %q, ends with %+v and %+v in %d executions:\n%s\n%s", seed, cancel, failure, result, len(fixture.executions), text, strings.Join(fixture.executedPaths, "\n"))
		}
	}
	t.Log(ends)
	for _, end := range []string{"success", "error broken", "error gone", "error rejected", "cancelled"} {
		if ends[end] == 0 {
			t.Errorf("outcomes of the runs: got %v, want some with %s", ends, end)
		}
	}
}

// TestRandomTreesWithConcurrentBranchesEnd: branches that run in parallel keep to their lanes,
// whatever fails, waits or is cancelled. Without failures the workflow takes the same steps as the
// interpreter alone.
func TestRandomTreesWithConcurrentBranchesEnd(t *testing.T) {
	t.Parallel()
	waited := 0
	for seed := range uint64(100) {
		d := randomTree(seed, 3)
		alone, fixture := setupDefinition(t, d), setupDefinition(t, d)
		r := rand.New(rand.NewPCG(seed, 3))
		badness := r.Uint32N(30) * uint32(seed%2)
		alone.executeStep, fixture.executeStep = outcomeByPath(seed, badness), outcomeByPath(seed, badness)
		alone.simulate("", nil, nil, pipeline.Ended{})
		fixture.historyIsLong = func() bool { return r.IntN(8) == 0 }
		result := fixture.runToEnd(stepsInput())
		waited += len(fixture.finished) - 1
		slices.Sort(alone.executedPaths)
		slices.Sort(fixture.executedPaths)
		crowded := slices.ContainsFunc(fixture.advances, func(a runs.AdvanceInput) bool { // more branches wait than fit
			return a.Position.Event != nil && a.Position.Event.Failure != nil && a.Position.Event.Failure.Code == runs.CodeLimitParallelTools
		})
		if diff := cmp.Diff(alone.executedPaths, fixture.executedPaths, cmpopts.EquateEmpty()); badness == 0 && !crowded && diff != "" {
			t.Errorf("paths (-want of the interpreter +got of the workflow): %s", diff)
		}
		if t.Failed() {
			text, _ := d.YAML()
			t.Fatalf("seed %d ends with %+v in %d executions:\n%s", seed, result, len(fixture.executions), text)
		}
	}
	if waited == 0 {
		t.Error("runs with interrupts: got none, want some")
	}
}
