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
	"go.temporal.io/sdk/temporal"
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
	t          *testing.T
	definition *agents.Definition
	// executeStep returns the event of the step at a path. EventCancelled is the event of a step
	// that finds the run cancelled. An error is the activity's and leaves a step that has begun.
	executeStep func(path string) (pipeline.Event, error)
	// failBeforeAdvance fails advances before their record is written, failAfterAdvance after that;
	// nil fails none.
	failBeforeAdvance, failAfterAdvance func(in runs.AdvanceInput) error
	// onStep is called with the input of each advance and call, before it; may be nil.
	onStep func(in any)
	// loseAnswer tells whether the workflow does not learn of a call or advance that was recorded,
	// because its worker died; nil = never. The caller holds mu.
	loseAnswer         func(s runs.Step) bool
	programs           workflows.Programs
	withholdsDecisions bool        // no decision is sent
	limits             runs.Limits // of the agents of steps
	// historyIsLong reports whether the history is long from the current advance on; nil = never.
	// The caller holds mu.
	historyIsLong func() bool
	// onExecution is called with the input of each execution that begins; may be nil.
	onExecution func(execution *fixture, in any)
	interrupts  []runs.Interrupt // calls that approvers decide about, a second later

	mu             sync.Mutex
	execution      *fixture // the current one
	state          json.RawMessage
	seq            uint64
	lastRecord     map[string]uint64             // by lane
	openStep       map[string]string             // the step that is open there
	failedStep     map[string]string             // the step that failed there
	advanceResults map[string]runs.AdvanceResult // by run and step
	callResults    map[string]runs.ToolAnswer    // by run and step
	lost           map[string]bool               // by run and step: its answer was lost
	stored         map[uint64]*storedData
	trees          map[uint64]json.RawMessage
	eventOf        map[string]pipeline.Event // by call or message
	pathOf         map[string]string         // paths of calls with an interrupt
	advances       []runs.AdvanceInput
	calls          []runs.ToolCall
	finished       []runs.FinishInput
	executions     []runs.Input // the input of each
	executedPaths  []string     // paths of executed steps
	stepEvents     []string     // +name for a started step and -name for a finished one
}

// setupProgram returns an agent that is a program.
func setupProgram(t *testing.T, program workflows.Program) *pipelineFixture {
	t.Helper()
	fixture := setupDefinition(t, &agents.Definition{Name: "a", Model: "p/m", Tools: []string{"*"}})
	fixture.programs = workflows.Programs{"p": program}
	return fixture
}

// programInput returns the input of a run whose agent is a program.
func programInput() runs.Input {
	in := stepsInput()
	in.Steps, in.Program = false, "p"
	return in
}

// setupPipeline returns a fixture whose agent has the given steps, in YAML.
func setupPipeline(t *testing.T, steps string) *pipelineFixture {
	t.Helper()
	d, err := agents.Parse("a.yaml", []byte("name: a\nmodel: p/m\ntools: ['*']\n"+steps))
	if err != nil {
		t.Fatal(err)
	}
	return setupDefinition(t, d)
}

// setupDefinition returns a fixture whose steps succeed with the output "ok".
func setupDefinition(t *testing.T, d *agents.Definition) *pipelineFixture {
	return &pipelineFixture{
		t: t, definition: d, limits: stepsInput().Limits, state: json.RawMessage(`{"n":0}`), lastRecord: map[string]uint64{}, openStep: map[string]string{}, failedStep: map[string]string{},
		advanceResults: map[string]runs.AdvanceResult{}, callResults: map[string]runs.ToolAnswer{}, lost: map[string]bool{}, stored: map[uint64]*storedData{}, trees: map[uint64]json.RawMessage{}, eventOf: map[string]pipeline.Event{}, pathOf: map[string]string{},
		executeStep: func(string) (pipeline.Event, error) { return doneEvent(`"ok"`), nil },
	}
}

// doneEvent returns the event of a step with an output.
func doneEvent(output string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventDone, Output: json.RawMessage(output)}
}

// failedEvent returns the event of a step that has failed.
func failedEvent(code string) pipeline.Event {
	return pipeline.Event{Kind: pipeline.EventFailed, Failure: &pipeline.Failure{Code: code, Message: "it broke"}}
}

var cancelledEvent = pipeline.Event{Kind: pipeline.EventCancelled, Failure: &pipeline.Failure{Code: "cancelled"}}

// stepsInput returns the input of a run whose agent is a pipeline.
func stepsInput() runs.Input {
	in := input
	in.Steps, in.Limits.Duration, in.Limits.Turns = true, 1000*time.Hour, 20
	return in
}

// runToEnd runs the agent to its end, in as many executions as it takes.
func (f *pipelineFixture) runToEnd(in runs.Input) runs.Result {
	f.t.Helper()
	next, workflowType := any(in), runs.TypeRun
	for range 300 {
		f.beginExecution(next)
		f.execution.env.ExecuteWorkflow(workflowType, next)
		var again *workflow.ContinueAsNewError
		if err := f.execution.env.GetWorkflowError(); !errors.As(err, &again) {
			return f.result(err)
		}
		workflowType, next = again.WorkflowType.Name, new(runs.Input)
		if workflowType == runs.TypeParked {
			next = new(runs.ParkedInput)
		}
		if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, next); err != nil {
			f.t.Fatal(err)
		}
	}
	f.t.Fatal("the run does not end: got 300 executions, want at most that many")
	return runs.Result{}
}

// result returns the result of the last execution, whose end must follow the last record.
func (f *pipelineFixture) result(err error) (result runs.Result) {
	f.t.Helper()
	if err != nil {
		f.t.Fatalf("workflow after %v: got %v, want no error", f.executedPaths, err)
	}
	if err := f.execution.env.GetWorkflowResult(&result); err != nil {
		f.t.Fatal(err)
	}
	if end := f.finished[len(f.finished)-1]; f.failedStep[end.Run.ID+" []"] == "" && end.After != f.lastRecord[end.Run.ID+" []"] {
		f.t.Errorf("the run's end follows record %d, want the lane's last record %d", end.After, f.lastRecord[end.Run.ID+" []"])
	}
	return result
}

// stepsToEnd runs the agent to its end, and returns the inputs of its advances and calls in their order.
func (f *pipelineFixture) stepsToEnd(in runs.Input) (inOrder []any) {
	f.t.Helper()
	f.onStep = func(step any) { inOrder = append(inOrder, step) }
	f.runToEnd(in)
	return inOrder
}

// beginExecution sets up the fixture of one execution.
func (f *pipelineFixture) beginExecution(in any) {
	execution, was := setup(f.t), f.execution
	f.execution = execution
	if was != nil {
		execution.env.SetStartTime(was.env.Now())
	}
	switch in := in.(type) {
	case runs.Input:
		f.executions = append(f.executions, in)
	case *runs.Input:
		f.executions = append(f.executions, *in)
	case *runs.ParkedInput:
		f.decide(in.Interrupts)
	}
	execution.model, execution.tool = f.callModel, f.callTool
	execution.finish = func(bool) error {
		f.mu.Lock()
		end := execution.finished[len(execution.finished)-1]
		f.finished = append(f.finished, end)
		f.mu.Unlock()
		f.decide(end.Interrupts)
		return nil
	}
	execution.isLogAhead = func(in runs.LogCheck) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if in.Done {
			_, isDone := f.advanceResults[in.Run.ID+" "+in.ID]
			return isDone
		}
		known, at := in.After, laneOf(in.Step)
		if in.Child != nil {
			known = max(known, in.Child.Since)
		}
		return f.lastRecord[at] > known || in.Call != nil && f.lastRecord[toolLane(in.Step, in.Call.Lane)] > max(known, in.Call.After)
	}
	if f.programs != nil {
		execution.env.RegisterWorkflowWithOptions(f.programs.AgentRun, workflow.RegisterOptions{Name: runs.TypeRun, DisableAlreadyRegisteredCheck: true})
		execution.env.RegisterWorkflowWithOptions(f.programs.AgentChild, workflow.RegisterOptions{Name: runs.TypeChild, DisableAlreadyRegisteredCheck: true})
	}
	execution.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AdvanceInput) (runs.AdvanceResult, error) { return f.advance(in) },
		activity.RegisterOptions{Name: runs.ActivityAdvance})
	execution.env.RegisterActivityWithOptions(func(_ context.Context, in runs.AnnounceInterrupts) (uint64, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		at := laneOf(in.Step)
		if in.Concurrent {
			if at += " asks"; in.After != f.lastRecord[at] {
				f.t.Errorf("interrupt on %[2]s follows record %[3]d, want %[1]d", f.lastRecord[at], at, in.After)
			}
			f.decide(in.Interrupts)
			return f.write(at, ""), nil
		}
		f.checkPosition(in.Step)
		return f.write(at, ""), nil
	}, activity.RegisterOptions{Name: runs.ActivityAnnounce})
	if f.onExecution != nil {
		f.onExecution(execution, in)
	}
}

// decide sends decisions that agree with answer, 400 ms later: by then an execution may be young.
func (f *pipelineFixture) decide(interrupts *runs.Interrupts) {
	if interrupts == nil || f.withholdsDecisions {
		return
	}
	f.interrupts = append(f.interrupts, interrupts.Items...)
	execution := f.execution
	execution.env.RegisterDelayedCallback(func() {
		var request runs.DecideRequest
		for _, item := range interrupts.Items {
			if item.Decision != nil {
				continue
			}
			d := runs.Decision{CallID: item.ID, Kind: runs.DecisionReject, Digest: "d"}
			if item.Client {
				d.Kind, d.Proposal = runs.DecisionToolResult, 1
			}
			f.mu.Lock()
			path := f.pathOf[item.ID]
			f.mu.Unlock()
			if ev, _ := f.executeStep(path); ev.Kind == pipeline.EventDone && !item.Client {
				d.Kind = runs.DecisionApprove
			}
			request.Decisions = append(request.Decisions, d)
		}
		execution.update(runs.UpdateDecide, request, make(chan any, 1))
	}, 400*time.Millisecond)
}

// laneOf returns the key of a step's lane.
func laneOf(s runs.Step) string {
	if s.Child == nil {
		return s.Run.ID + " []"
	}
	return fmt.Sprint(s.Run.ID, " ", s.Child.Lanes)
}

// toolLane returns the key of the lane of a tool call.
func toolLane(s runs.Step, lane int) string { return fmt.Sprint(laneOf(s), " tool ", lane) }

// checkPosition fails the test unless a step follows the last record of its agent's lane and closes
// the step that is open there.
func (f *pipelineFixture) checkPosition(s runs.Step) {
	at, wrong := laneOf(s), s.After != f.lastRecord[laneOf(s)]
	if s.After == 0 && s.Child != nil {
		wrong = s.Child.Since < f.lastRecord[at]
		delete(f.openStep, at)
	}
	if wrong || s.Closes != f.openStep[at] || f.failedStep[at] != "" {
		f.t.Errorf("step %s on %s: got After %d and Closes %q, want record %d and step %q; failed step: %q", s.ID, at, s.After, s.Closes, f.lastRecord[at], f.openStep[at], f.failedStep[at])
	}
}

// endAfterFailure returns the end of a lane after a step that has failed there. A step that had not
// begun begins with it.
func (f *pipelineFixture) endAfterFailure(s runs.Step, b runs.FailedStep) uint64 {
	at := laneOf(s)
	switch f.failedStep[at] {
	case "":
		s.After, s.Closes = b.After, b.Closes
		f.checkPosition(s)
		f.openStep[at] = b.Name
	case b.ID:
		delete(f.failedStep, at)
	}
	return f.lastRecord[at]
}

// write appends a record to a lane.
func (f *pipelineFixture) write(at, open string) uint64 {
	f.seq++
	f.lastRecord[at], f.openStep[at] = f.seq, open
	return f.seq
}

// failStep makes a step that has begun fail permanently, with an error of Temporal's or a code.
func (f *pipelineFixture) failStep(s runs.Step, step string, err error) error {
	f.failedStep[laneOf(s)] = step
	f.write(laneOf(s), s.Name)
	var app *temporal.ApplicationError
	var timeout *temporal.TimeoutError
	if errors.As(err, &app) || errors.As(err, &timeout) {
		return err
	}
	return temporal.NewNonRetryableApplicationError("it broke", err.Error(), nil)
}

// callModel is the model activity: it executes the step at its path.
func (f *pipelineFixture) callModel(in runs.ModelCall) (runs.ModelAnswer, error) {
	ev, err := f.executeStep(in.PipelineStep.Path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkPosition(in.Step)
	f.executedPaths = append(f.executedPaths, in.PipelineStep.Path)
	if err != nil {
		return runs.ModelAnswer{}, f.failStep(in.Step, in.ID, err)
	}
	a := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: f.write(laneOf(in.Step), in.Name)}
	a.MessageID, a.Usage = fmt.Sprint("m", a.Seq), runs.Usage{Model: "m", Total: new(int64(1))}
	if f.eventOf[a.MessageID] = ev; ev.Kind == pipeline.EventCancelled {
		a.Outcome = runs.OutcomeCancelled
	}
	return a, nil
}

// loses reports whether the answer of a step is lost. No answer is lost twice.
func (f *pipelineFixture) loses(s runs.Step) bool {
	if f.loseAnswer == nil || f.lost[s.Run.ID+" "+s.ID] || !f.loseAnswer(s) {
		return false
	}
	f.lost[s.Run.ID+" "+s.ID] = true
	return true
}

// errLost ends an attempt whose worker died after it had written the record of its step.
var errLost = temporal.NewApplicationErrorWithOptions("the worker died", runs.ErrorWorkerLost, temporal.ApplicationErrorOptions{})

// repeat executes a step again, with the input of another fixture.
func (f *pipelineFixture) repeat(in any) {
	f.t.Helper()
	var err error
	switch in := in.(type) {
	case runs.AdvanceInput:
		_, err = f.advance(in)
	case runs.ToolCall:
		_, err = f.callTool(in)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// callTool is the tool activity: it executes the step at its path, once per ID.
func (f *pipelineFixture) callTool(in runs.ToolCall) (runs.ToolAnswer, error) {
	if f.onStep != nil {
		f.onStep(in)
	}
	f.mu.Lock()
	answer, recorded := f.callResults[in.Run.ID+" "+in.ID]
	if recorded {
		delete(f.failedStep, laneOf(in.Step))
	}
	f.mu.Unlock()
	if recorded {
		return answer, nil
	}
	f.mu.Lock()
	f.calls = append(f.calls, in)
	f.mu.Unlock()
	answer, err := f.makeCall(in)
	if err != nil {
		return answer, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callResults[in.Run.ID+" "+in.ID] = answer
	if f.loses(in.Step) {
		f.failedStep[laneOf(in.Step)] = in.TurnStepID
		return runs.ToolAnswer{}, errLost
	}
	return answer, nil
}

// makeCall executes the step at its path.
func (f *pipelineFixture) makeCall(in runs.ToolCall) (runs.ToolAnswer, error) {
	ev, err := doneEvent(`{"approved":false}`), error(nil)
	switch {
	case in.Stops:
		ev = cancelledEvent
	case in.Decision == nil, in.Decision.Kind == runs.DecisionToolResult:
		ev, err = f.executeStep(in.PipelineStep.Path)
	case in.Decision.Kind == runs.DecisionApprove:
		ev = doneEvent(`{"approved":true}`)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checkPosition(in.Step)
	tools := toolLane(in.Step, in.Lane)
	since := in.After
	if in.Child != nil {
		since = max(since, in.Child.Since)
	}
	if in.LaneAfter != f.lastRecord[tools] && (in.LaneAfter != 0 || since < f.lastRecord[tools]) {
		f.t.Errorf("call %s on %s: got LaneAfter %d, want %d", in.ID, tools, in.LaneAfter, f.lastRecord[tools])
	}
	if !in.Stops {
		f.executedPaths = append(f.executedPaths, in.PipelineStep.Path)
	}
	if err != nil {
		f.write(tools, "")
		return runs.ToolAnswer{}, f.failStep(in.Step, in.TurnStepID, err)
	}
	f.eventOf[in.CallID] = ev
	a := runs.ToolAnswer{Outcome: runs.OutcomeSuccess, Opened: f.write(laneOf(in.Step), in.Name), Seq: f.write(tools, "")}
	if ev.Kind == pipeline.EventCancelled {
		a.Outcome = runs.OutcomeCancelled
	}
	return a, nil
}

// advance is the advance activity: it takes the next step of the tree, once per ID.
func (f *pipelineFixture) advance(in runs.AdvanceInput) (runs.AdvanceResult, error) {
	if f.onStep != nil {
		f.onStep(in)
	}
	if f.failBeforeAdvance != nil {
		if err := f.failBeforeAdvance(in); err != nil {
			return runs.AdvanceResult{}, err
		}
	}
	f.mu.Lock()
	next, err := f.interpret(in)
	renews := f.historyIsLong != nil && f.historyIsLong()
	if err == nil && f.loses(in.Step) {
		err = errLost
	}
	f.mu.Unlock()
	if renews {
		execution := f.execution
		execution.env.RegisterDelayedCallback(func() { execution.env.SetContinueAsNewSuggested(true) }, 0)
	}
	if f.failAfterAdvance != nil && err == nil {
		err = f.failAfterAdvance(in)
	}
	return next, err
}

// interpret advances the step tree with the real interpreter.
func (f *pipelineFixture) interpret(in runs.AdvanceInput) (next runs.AdvanceResult, err error) {
	at := laneOf(in.Step)
	if next, repeated := f.advanceResults[in.Run.ID+" "+in.ID]; repeated {
		return next, nil
	}
	if b := in.FailedStep; b != nil {
		in.After = f.endAfterFailure(in.Step, *b)
	}
	f.checkPosition(in.Step)
	f.advances = append(f.advances, in)
	next.TreePosition = in.Position.TreePosition
	if !in.Resumes && len(in.Suspended) == 0 {
		next, err = f.advanceOnce(in)
	}
	next.Seq = f.write(at, "")
	if next.Answer != nil {
		next.Answer.Seq = next.Seq
	}
	if next.Branches != nil {
		next.Branches.Record = next.Seq
	}
	f.advanceResults[in.Run.ID+" "+in.ID] = next
	return next, err
}

// advanceOnce advances the tree to the next action.
func (f *pipelineFixture) advanceOnce(in runs.AdvanceInput) (runs.AdvanceResult, error) {
	ev, items, ended := pipeline.Event{}, []json.RawMessage(nil), pipeline.Ended{}
	if in.Position.Event != nil {
		ev = *in.Position.Event
	}
	ev.Branches = in.Position.Branches.BranchFailures()
	if active := in.Position.Active; ev.Kind == pipeline.EventDone && active != nil && active.CallID != "" {
		ev = f.eventOf[active.CallID]
	} else if ev.Kind == pipeline.EventDone && active != nil {
		ev = f.eventOf[in.Position.Answered]
	}
	for i, fork := range in.Position.TreePosition.Branch {
		var item json.RawMessage
		of := f.stored[in.Position.Items[i]]
		if of.items != nil {
			item = of.items[fork.Index]
		}
		if ended = (pipeline.Ended{}); of.ends != nil && of.ends[fork.Index] > 0 {
			ended = f.stored[of.ends[fork.Index]].ended
		}
		items = append(items, item)
	}
	if b := in.Position.Branches; b != nil && b.Compensates {
		var err error
		ev.Items = f.stored[b.Record].items
		if ev.Ends, err = b.EndRecords(); err != nil {
			return runs.AdvanceResult{}, err
		}
	}
	env := pipeline.Env{Input: json.RawMessage(`{}`), Messages: json.RawMessage(`[]`), State: f.state, Items: items, Now: in.Now, Ended: ended, Recall: f.storedEntry}
	if in.Expression != "" {
		return evaluate(in, env), nil
	}
	d := f.stepTree(in)
	m, err := pipeline.Advance(d, in.Position.TreePosition, ev, env)
	if err != nil {
		f.t.Errorf("advance %s: got %v, want no error", in.ID, err)
		return runs.AdvanceResult{}, temporal.NewNonRetryableApplicationError(err.Error(), "cursor", nil)
	}
	f.recordChanges(m.Changes)
	f.storeAdvanced(m)
	return f.returnAdvanced(in, d, m), nil
}

// stepTree returns the step tree: the agent's steps, or those of its program.
func (f *pipelineFixture) stepTree(in runs.AdvanceInput) *agents.Definition {
	tree := in.Tree
	if tree != nil {
		f.trees[f.seq+1] = tree // the sequence of the record that this advance writes
	} else if tree = f.trees[in.Position.Tree]; tree == nil {
		return f.definition
	}
	d, err := pipeline.WithTree(f.definition, tree)
	if err != nil {
		f.t.Error(err)
	}
	return d
}

// evaluate returns the result of an advance that only evaluates an expression.
func evaluate(in runs.AdvanceInput, env pipeline.Env) (next runs.AdvanceResult) {
	var err error
	if next.Value, err = pipeline.Value(in.Expression, in.Position.TreePosition, env); err != nil {
		next.Failed = &pipeline.Failure{Code: "invalid_expression", Message: err.Error()}
	}
	return next
}

// recordChanges applies the changes of the state, and notes the started and finished steps.
func (f *pipelineFixture) recordChanges(changes []pipeline.Change) {
	for _, c := range changes {
		switch {
		case c.Started != "":
			f.stepEvents = append(f.stepEvents, "+"+c.Started)
		case c.Finished != "":
			f.stepEvents = append(f.stepEvents, "-"+c.Finished)
		default:
			var err error
			if f.state, err = agui.Patch(f.state, c.Patch); err != nil {
				f.t.Error(err)
			}
		}
	}
}

// returnAdvanced returns the workflow's next action.
func (f *pipelineFixture) returnAdvanced(in runs.AdvanceInput, d *agents.Definition, m pipeline.Advanced) runs.AdvanceResult {
	next, do := runs.AdvanceResult{TreePosition: m.Position, Sleep: m.Action.Sleep, Failed: m.Action.Failed}, m.Action
	active := &runs.ActiveStep{AgentRef: runs.AgentRef{Agent: "a", Revision: "v", Limits: f.limits}, Deadline: do.Deadline}
	active.PipelineStep = runs.StepRef{Path: do.Path, Name: do.Name, Scope: "s"}
	switch {
	case do.Agent != nil:
		next.Active = active
	case do.Tool != nil, do.Approve != nil:
		active.CallID, active.Agent, active.Revision = "call of "+do.Path, in.Agent, in.Revision
		active.PipelineStep.Inline = do.Approve != nil
		active.OutlastsCancel = do.Tool != nil && pipeline.StepAt(d, do.Path).Compensate != nil && m.Position.Undoing == nil
		answer := modelAnswer(0, active.CallID)
		switch f.pathOf[active.CallID] = do.Path; {
		case active.PipelineStep.Inline:
			answer.Calls[0].Approval, answer.InterruptCount = &runs.Approval{}, 1
		case do.Tool.Tool == "client":
			answer.Calls[0].Client, answer.InterruptCount = true, 1
		case do.Tool.Tool == "far":
			answer.Calls[0].Queue, answer.QueuedOrSequencedCount = "q", 1
		}
		next.Active, next.Answer = active, &answer
	case do.Branches != nil:
		b := do.Branches
		next.Branches = &runs.Branches{
			Path: do.Path, Names: b.Names, Count: b.Count, Concurrency: max(1, min(b.Concurrency, b.Count)), StopOnFailure: b.Stop, Deadline: do.Deadline,
			Compensates: b.Ends == nil && pipeline.StepAt(d, do.Path).Compensates(),
		}
	}
	return next
}
