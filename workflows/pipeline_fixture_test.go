package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// pipelineFixture is an agent that consists of steps, with the activities of its workflows, over as
// many executions as they take. Advances interpret the step tree for real, over a state in memory.
// The fixture checks what the log requires: each step follows the last record of its lane, closes
// the step that is open there, and names the step that has failed there.
type pipelineFixture struct {
	t *testing.T
	d *agents.Definition
	// answer returns the event of the step at a path. EventCancelled is the event of a step that
	// finds the run cancelled. An error is the activity's and leaves a step that has begun.
	answer func(path string) (pipeline.Event, error)
	// refuse fails advances before they are written, advanced after that; nil fails none.
	refuse, advanced func(in runs.AdvanceInput) error
	// unheard fails calls that have advanced the tree; nil fails none.
	unheard  func(in runs.ToolCall) error
	programs workflows.Programs
	silent   bool        // no decision is sent
	limits   runs.Limits // of the agents of steps
	// renews reports whether the history is long from the current advance on; nil = never. The
	// caller holds mu.
	renews func() bool
	// begun is called with the input of each execution that begins; may be nil.
	begun func(w *fixture, in any)
	asks  []runs.Interrupt // calls that approvers decide about, a second later

	mu         sync.Mutex
	fixture    *fixture // of the current execution
	state      json.RawMessage
	seq        uint64
	ends       map[string]uint64             // by lane
	open       map[string]string             // the step that is open there
	broken     map[string]string             // the step that failed there
	written    map[string]runs.AdvanceResult // by run and step
	kept       map[uint64]*storedData
	trees      map[uint64]json.RawMessage
	came       map[string]pipeline.Event // by call or message
	places     map[string]string         // paths of calls with an interrupt
	advances   []runs.AdvanceInput
	finishes   []runs.FinishInput
	runs       []runs.Input // of each execution
	did        []string     // paths of executed steps
	stepEvents []string     // +name for a started step and -name for a finished one
}

// setupProgram returns an agent that is a program.
func setupProgram(t *testing.T, program workflows.Program) *pipelineFixture {
	t.Helper()
	k := setupDefinition(t, &agents.Definition{Name: "a", Model: "p/m", Tools: []string{"*"}})
	k.programs = workflows.Programs{"p": program}
	return k
}

func programInput() runs.Input {
	in := stepsInput()
	in.Steps, in.Program = false, "p"
	return in
}

func setupPipeline(t *testing.T, steps string) *pipelineFixture {
	t.Helper()
	d, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: ['*']\n"+steps))
	if err != nil {
		t.Fatal(err)
	}
	return setupDefinition(t, d)
}

func setupDefinition(t *testing.T, d *agents.Definition) *pipelineFixture {
	return &pipelineFixture{
		t: t, d: d, limits: stepsInput().Limits, state: json.RawMessage(`{"n":0}`), ends: map[string]uint64{}, open: map[string]string{}, broken: map[string]string{},
		written: map[string]runs.AdvanceResult{}, kept: map[uint64]*storedData{}, trees: map[uint64]json.RawMessage{}, came: map[string]pipeline.Event{}, places: map[string]string{},
		answer: func(string) (pipeline.Event, error) { return done(`"ok"`), nil },
	}
}

func done(output string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventDone, Output: json.RawMessage(output)}
}

func failed(code string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: "it broke"}}
}

var stopped = pipeline.Event{Kind: pipeline.EventCancelled, Failure: &pipeline.Failure{Code: "cancelled"}}

func stepsInput() runs.Input {
	in := input
	in.Steps, in.Limits.Duration, in.Limits.Turns = true, 1000*time.Hour, 20
	return in
}

// walk runs the agent to its end, in as many executions as it takes.
func (k *pipelineFixture) walk(in runs.Input) runs.Result {
	k.t.Helper()
	next, workflowType := any(in), runs.TypeRun
	for range 300 {
		k.begin(next)
		k.fixture.env.ExecuteWorkflow(workflowType, next)
		var again *workflow.ContinueAsNewError
		if err := k.fixture.env.GetWorkflowError(); !errors.As(err, &again) {
			return k.result(err)
		}
		workflowType, next = again.WorkflowType.Name, new(runs.Input)
		if workflowType == runs.TypeParked {
			next = new(runs.ParkedInput)
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, next); err != nil {
			k.t.Fatal(err)
		}
	}
	k.t.Fatal("the run does not end")
	return runs.Result{}
}

func (k *pipelineFixture) result(err error) (result runs.Result) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("workflow: %v after %v", err, k.did)
	}
	if err := k.fixture.env.GetWorkflowResult(&result); err != nil {
		k.t.Fatal(err)
	}
	if end := k.finishes[len(k.finishes)-1]; k.broken[end.Run.ID+" []"] == "" && end.After != k.ends[end.Run.ID+" []"] {
		k.t.Errorf("the run's end follows record %d, want the lane's last record %d", end.After, k.ends[end.Run.ID+" []"])
	}
	return result
}

// begin sets up the fixture of one execution.
func (k *pipelineFixture) begin(in any) {
	w, was := setup(k.t), k.fixture
	k.fixture = w
	if was != nil {
		w.env.SetStartTime(was.env.Now())
	}
	switch in := in.(type) {
	case runs.Input:
		k.runs = append(k.runs, in)
	case *runs.Input:
		k.runs = append(k.runs, *in)
	case *runs.ParkedInput:
		k.decide(in.Interrupts)
	}
	w.model, w.tool = k.speak, k.call
	w.finish = func(bool) error {
		k.mu.Lock()
		end := w.finished[len(w.finished)-1]
		k.finishes = append(k.finishes, end)
		k.mu.Unlock()
		k.decide(end.Interrupts)
		return nil
	}
	if k.programs != nil {
		w.env.RegisterWorkflowWithOptions(k.programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
		w.env.RegisterWorkflowWithOptions(k.programs.AgentChild, workflow.RegisterOptions{Name: runs.TypeChild, DisableAlreadyRegisteredCheck: true})
	}
	w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute, Interceptors: []interceptor.WorkerInterceptor{&cancelWaiter{}}})
	w.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) { return k.advance(in) },
		activity.RegisterOptions{Name: runs.ActivityAdvance})
	w.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AnnounceInterrupts) (uint64, error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		at := lane(in.Step)
		if in.Concurrent {
			if at += " asks"; in.After != k.ends[at] {
				k.t.Errorf("interrupt on %[2]s follows record %[3]d, want %[1]d", k.ends[at], at, in.After)
			}
			k.decide(in.Interrupts)
			return k.write(at, ""), nil
		}
		k.checkPosition(in.Step)
		return k.write(at, ""), nil
	}, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	if k.begun != nil {
		k.begun(w, in)
	}
}

// decide sends decisions that agree with answer, a second later.
func (k *pipelineFixture) decide(interrupts *runs.Interrupts) {
	if interrupts == nil || k.silent {
		return
	}
	k.asks = append(k.asks, interrupts.Items...)
	w := k.fixture
	w.env.RegisterDelayedCallback(func() {
		var said runs.DecideRequest
		for _, item := range interrupts.Items {
			if item.Decision != nil {
				continue
			}
			d := runs.Decision{CallID: item.ID, Kind: runs.DecisionReject, Digest: "d"}
			if item.Client {
				d.Kind, d.Input = runs.DecisionToolResult, 1
			}
			k.mu.Lock()
			path := k.places[item.ID]
			k.mu.Unlock()
			if ev, _ := k.answer(path); ev.Kind == pipeline.EventDone && !item.Client {
				d.Kind = runs.DecisionApprove
			}
			said.Decisions = append(said.Decisions, d)
		}
		w.update(runs.UpdateDecide, said, make(chan any, 1))
	}, time.Second)
}

func lane(s runs.Step) string {
	if s.Child == nil {
		return s.Run.ID + " []"
	}
	return fmt.Sprint(s.Run.ID, " ", s.Child.Lanes)
}

// checkPosition fails the test unless a step follows the last record of its agent's lane and closes
// the step that is open there.
func (k *pipelineFixture) checkPosition(s runs.Step) {
	at, wrong := lane(s), s.After != k.ends[lane(s)]
	if s.After == 0 && s.Child != nil {
		wrong = s.Child.Since < k.ends[at]
		delete(k.open, at)
	}
	if wrong || s.Closes != k.open[at] || k.broken[at] != "" {
		k.t.Errorf("step %+v does not follow record %d of the lane %s, where %q is open and %q has failed", s, k.ends[at], at, k.open[at], k.broken[at])
	}
}

// endAfterFailure returns the end of a lane after a step that has failed there. A step that had not
// begun begins with it.
func (k *pipelineFixture) endAfterFailure(s runs.Step, b runs.FailedStep) uint64 {
	at := lane(s)
	switch k.broken[at] {
	case "":
		s.After, s.Closes = b.After, b.Closes
		k.checkPosition(s)
		k.open[at] = b.Name
	case b.ID:
		delete(k.broken, at)
	}
	return k.ends[at]
}

// write appends a record to a lane.
func (k *pipelineFixture) write(at, open string) uint64 {
	k.seq++
	k.ends[at], k.open[at] = k.seq, open
	return k.seq
}

// breaks makes a step that has begun fail permanently, with an error of Temporal's or a code.
func (k *pipelineFixture) breaks(s runs.Step, step string, err error) error {
	k.broken[lane(s)] = step
	k.write(lane(s), s.Name)
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	if errors.As(err, &app) || errors.As(err, &timeout) {
		return err
	}
	return temporal.NewNonRetryableApplicationError("it broke", err.Error(), nil)
}

func (k *pipelineFixture) speak(in runs.ModelCall) (runs.ModelAnswer, error) {
	ev, err := k.answer(in.Place.Path)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkPosition(in.Step)
	k.did = append(k.did, in.Place.Path)
	if err != nil {
		return runs.ModelAnswer{}, k.breaks(in.Step, in.ID, err)
	}
	a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: k.write(lane(in.Step), in.Name)}
	a.MessageID, a.Usage = fmt.Sprint("m", a.Seq), runs.Usage{Model: "m", Total: new(int64(1))}
	if k.came[a.MessageID] = ev; ev.Kind == pipeline.EventCancelled {
		a.Outcome = runs.OutcomeCancelled
	}
	return a, nil
}

// call makes a call. If the call succeeds and is chained, it also makes the next advance.
func (k *pipelineFixture) call(in runs.ToolCall) (runs.ToolAnswer, error) {
	a, err := k.makeCall(in)
	if err != nil || in.Chained == nil || a.Outcome != runs.OutcomeSuccess {
		return a, err
	}
	if next, err := k.advance(in.Advance(a.Opened, in.Chained.Now)); err == nil {
		if a.Advanced = &next; k.unheard != nil {
			return a, k.unheard(in)
		}
	}
	return a, nil
}

func (k *pipelineFixture) makeCall(in runs.ToolCall) (runs.ToolAnswer, error) {
	ev, err := done(`{"approved":false}`), error(nil)
	switch {
	case in.Decision == nil, in.Decision.Kind == runs.DecisionToolResult:
		ev, err = k.answer(in.Place.Path)
	case in.Decision.Kind == runs.DecisionApprove:
		ev = done(`{"approved":true}`)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checkPosition(in.Step)
	tools := fmt.Sprint(lane(in.Step), " tool ", in.Lane)
	since := in.After
	if in.Child != nil {
		since = max(since, in.Child.Since)
	}
	if in.LaneAfter != k.ends[tools] && (in.LaneAfter != 0 || since < k.ends[tools]) {
		k.t.Errorf("call %+v does not follow record %d of the lane %s", in, k.ends[tools], tools)
	}
	k.did = append(k.did, in.Place.Path)
	if err != nil {
		k.write(tools, "")
		return runs.ToolAnswer{}, k.breaks(in.Step, in.Open, err)
	}
	k.came[in.CallID] = ev
	a := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: k.write(lane(in.Step), in.Name), Seq: k.write(tools, "")}
	if ev.Kind == pipeline.EventCancelled {
		a.Outcome = runs.OutcomeCancelled
	}
	return a, nil
}

func (k *pipelineFixture) advance(in runs.AdvanceInput) (runs.AdvanceResult, error) {
	if k.refuse != nil {
		if err := k.refuse(in); err != nil {
			return runs.AdvanceResult{}, err
		}
	}
	k.mu.Lock()
	next, err := k.move(in)
	renews := k.renews != nil && k.renews()
	k.mu.Unlock()
	if renews {
		w := k.fixture
		w.env.RegisterDelayedCallback(func() { w.env.SetContinueAsNewSuggested(true) }, 0)
	}
	if k.advanced != nil && err == nil {
		err = k.advanced(in)
	}
	return next, err
}

func (k *pipelineFixture) move(in runs.AdvanceInput) (next runs.AdvanceResult, err error) {
	at := lane(in.Step)
	if next, again := k.written[in.Run.ID+" "+in.ID]; again {
		return next, nil
	}
	if b := in.FailedStep; b != nil {
		in.After = k.endAfterFailure(in.Step, *b)
	}
	k.checkPosition(in.Step)
	k.advances = append(k.advances, in)
	next.Cursor = in.Position.Cursor
	if !in.Resumes && len(in.Suspended) == 0 {
		next, err = k.step(in)
	}
	next.CallEnded = in.AfterCall
	next.Seq = k.write(at, "")
	if next.Answer != nil {
		next.Answer.Seq = next.Seq
	}
	if next.Branches != nil {
		next.Branches.Record = next.Seq
	}
	k.written[in.Run.ID+" "+in.ID] = next
	return next, err
}

// step advances the tree to the next action.
func (k *pipelineFixture) step(in runs.AdvanceInput) (runs.AdvanceResult, error) {
	ev, items, ended := pipeline.Event{}, []json.RawMessage(nil), pipeline.Ended{}
	if in.Position.Event != nil {
		ev = *in.Position.Event
	}
	ev.Branches = in.Position.Branches.BranchFailures()
	if active := in.Position.Active; ev.Kind == pipeline.EventDone && active != nil && active.CallID != "" {
		ev = k.came[active.CallID]
	} else if ev.Kind == pipeline.EventDone && active != nil {
		ev = k.came[in.Position.Answered]
	}
	for i, fork := range in.Position.Cursor.Branch {
		var item json.RawMessage
		of := k.kept[in.Position.Items[i]]
		if of.items != nil {
			item = of.items[fork.Index]
		}
		if ended = (pipeline.Ended{}); of.ends != nil && of.ends[fork.Index] > 0 {
			ended = k.kept[of.ends[fork.Index]].ended
		}
		items = append(items, item)
	}
	if b := in.Position.Branches; b != nil && b.Compensates {
		var err error
		ev.Items = k.kept[b.Record].items
		if ev.Ends, err = b.EndRecords(); err != nil {
			return runs.AdvanceResult{}, err
		}
	}
	env := pipeline.Env{Input: json.RawMessage(`{}`), Messages: json.RawMessage(`[]`), State: k.state, Items: items, Now: in.Now, Ended: ended, Recall: k.recall}
	if in.Expression != "" {
		return value(in, env), nil
	}
	d := k.tree(in)
	m, err := pipeline.Advance(d, in.Position.Cursor, ev, env)
	if err != nil {
		k.t.Errorf("advance %+v: %v", in, err)
		return runs.AdvanceResult{}, temporal.NewNonRetryableApplicationError(err.Error(), "cursor", nil)
	}
	k.tell(m.Changes)
	k.keep(m)
	return k.take(in, d, m), nil
}

// tree returns the step tree: the agent's steps, or those of its program.
func (k *pipelineFixture) tree(in runs.AdvanceInput) *agents.Definition {
	tree := in.Tree
	if tree != nil {
		k.trees[k.seq+1] = tree // the sequence of the record that this advance writes
	} else if tree = k.trees[in.Position.Tree]; tree == nil {
		return k.d
	}
	d, err := pipeline.WithTree(k.d, tree)
	if err != nil {
		k.t.Error(err)
	}
	return d
}

func value(in runs.AdvanceInput, env pipeline.Env) (next runs.AdvanceResult) {
	var err error
	if next.Value, err = pipeline.Value(in.Expression, in.Position.Cursor, env); err != nil {
		next.Failed = &pipeline.Failure{Code: "invalid_expression", Message: err.Error()}
	}
	return next
}

func (k *pipelineFixture) tell(changes []pipeline.Change) {
	for _, c := range changes {
		switch {
		case c.Started != "":
			k.stepEvents = append(k.stepEvents, "+"+c.Started)
		case c.Finished != "":
			k.stepEvents = append(k.stepEvents, "-"+c.Finished)
		default:
			var err error
			if k.state, err = agui.Patch(k.state, c.Patch); err != nil {
				k.t.Error(err)
			}
		}
	}
}

// take returns the workflow's next action.
func (k *pipelineFixture) take(in runs.AdvanceInput, d *agents.Definition, m pipeline.Move) runs.AdvanceResult {
	next, do := runs.AdvanceResult{Cursor: m.Cursor, Sleep: m.Action.Sleep, Failed: m.Action.Failed}, m.Action
	active := &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: k.limits}, Deadline: do.Deadline}
	active.Place = runs.StepPlace{Path: do.Path, Name: do.Name, Scope: "s"}
	switch {
	case do.Agent != nil:
		next.Active = active
	case do.Tool != nil, do.Approve != nil:
		active.CallID, active.Agent, active.Revision = "call of "+do.Path, in.Agent, in.Revision
		active.Place.Inline = do.Approve != nil
		answer := says(0, active.CallID)
		switch k.places[active.CallID] = do.Path; {
		case active.Place.Inline:
			answer.Calls[0].Approval, answer.WaitCount = &runs.Approval{}, 1
		case do.Tool.Tool == "client":
			answer.Calls[0].Client, answer.WaitCount = true, 1
		case do.Tool.Tool == "far":
			answer.Calls[0].Queue, answer.OrderedCount = "q", 1
		}
		next.Active, next.Answer = active, &answer
	case do.Branches != nil:
		b := do.Branches
		next.Branches = &runs.Branches{
			Path: do.Path, Names: b.Names, Count: b.Count, Concurrency: max(1, min(b.AtOnce, b.Count)), StopOnFailure: b.Stop, Deadline: do.Deadline,
			Compensates: b.Ends == nil && pipeline.StepAt(d, do.Path).Compensates(),
		}
	}
	return next
}
