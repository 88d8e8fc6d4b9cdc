package workflows

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/pipeline"
)

// An agent that consists of steps walks them:
//
//	advance ──► agent ──► advance ──► call ──► advance ──► branches ──► advance ──► end
//	   │         turns       │         one        │         children
//	   └ tells what has come of the step before, changes the state, and finds out what is next
//
// The workflow does not know the steps. An activity that holds the content walks from one thing to do to the
// next; the workflow has the cursor, does what it is told, and says what came of it. So a history
// has what was done of a tree and nothing of the tree, and no expression is evaluated here. Before each
// advance the run may pause, or continue as new: Walk has everything. Where nothing can come in between, an advance rides on
// the call before it, and the run may pause behind it (onward.go).

// Position is how far an agent has come in its steps.
type Position struct {
	Cursor pipeline.Cursor `json:"cursor"`
	// Origin names the run that began the steps, and Input is that run's input: runs that go on with them have
	// others.
	Origin string `json:"origin"`
	Input  uint64 `json:"input,omitempty"`
	// Number is that of a program's step, and Tree the record that has it; 0 = the steps are the agent's.
	Number int    `json:"number,omitempty"`
	Tree   uint64 `json:"tree,omitempty"`
	// Child is what a subagent works for, if the steps are a subagent's.
	Child *Child `json:"task,omitempty"`
	// Items are the records that have the items of the branches which led here, one for each of the cursor's.
	Items []uint64 `json:"items,omitempty"`
	// Active is the agent or call that the walk has come to, Fan are the branches, Wake is when it goes on.
	Active   *ActiveStep `json:"leaf,omitempty"`
	Branches *Branches   `json:"fan,omitempty"`
	Wake     time.Time   `json:"wake,omitzero"`
	// Answer has the call of a leaf that is one, until that is made.
	Answer *ModelAnswer `json:"answer,omitempty"`
	// Event is what has come of that; nil = it is under way. Said is the message that an agent ended with.
	Event    *pipeline.Event `json:"event,omitempty"`
	Answered string          `json:"said,omitempty"`
	// LastAnswer is the message with which the last agent has ended among the steps of a subagent: they may come to the call's
	// result, and it may be long ago.
	LastAnswer string `json:"last,omitempty"`
	// Advances is how often this run has advanced.
	Advances int `json:"advances,omitempty"`
	// Exceeded is what people are to be asked before the branches of Fan begin.
	Exceeded *ExceededLimit `json:"excess,omitempty"`
	// End is how the run ends when what was done is compensated for.
	End *PendingEnd `json:"then,omitempty"`
}

// FailedStep is a step that has failed on the lane on which the agent speaks. Whether it has begun there is not known,
// and it may still write: it is taken over before anything comes behind it.
type FailedStep struct {
	ID      string     `json:"step"`
	Name    string     `json:"name"`
	Closes  string     `json:"closes,omitempty"`
	After   uint64     `json:"after"`
	Place   *StepPlace `json:"at,omitempty"`
	Steered []uint64   `json:"steered,omitempty"`
}

// PendingEnd is how a run ends.
type PendingEnd struct {
	Outcome Outcome `json:"outcome"`
	pipeline.Failure
}

func (t *PendingEnd) ending() ending {
	if t.Outcome == OutcomeCancelled {
		return ending{outcome: t.Outcome}
	}
	end := endWith(t.Failure)
	end.outcome = t.Outcome
	return end
}

// ActiveStep is a step that is an agent, a call or a question.
type ActiveStep struct {
	AgentRef           // the agent; of a call, the one whose rules it is under
	Place    StepPlace `json:"at"`
	// CallID is the call that is made; empty = the step is an agent. Lasts tells that there is something that compensates for
	// it: whether it was done has to be known, and a cancel lets it come to its end.
	CallID         string    `json:"callId,omitempty"`
	OutlastsCancel bool      `json:"lasts,omitempty"`
	Deadline       time.Time `json:"deadline,omitzero"`
	// Turns is how often the agent's model was called. Tokens and Cost are what it has used by now, with what worked for it.
	Turns  int   `json:"turns,omitempty"`
	Tokens int64 `json:"tokens,omitempty"`
	Cost   int64 `json:"cost,omitempty"`
}

// StepPlace is a place among steps where an agent speaks or a call is made.
type StepPlace struct {
	Path string `json:"path"`
	Name string `json:"name"`
	// Inline tells that the definition is that of the step.
	Inline bool `json:"inline,omitempty"`
	// Scope marks what is said here. Alone tells that the agent hears nothing else of the conversation.
	Scope    string `json:"scope"`
	Isolated bool   `json:"alone,omitempty"`
	// Tree is the record that has the steps of a program; 0 = they are the agent's.
	Tree uint64 `json:"tree,omitempty"`
	// Prompts are the records that have what the agent is asked, besides the conversation.
	Prompts []uint64 `json:"asked,omitempty"`
}

// Advance asks for what comes next in a walk.
type Advance struct {
	Step
	Beginning
	// Announces is set in a subagent's first step: the call that it works for.
	Announces *ToolCall `json:"announces,omitempty"`
	Position  Position  `json:"walk"`
	// Now is the time by the clock that deadlines are measured with.
	Now time.Time `json:"now"`
	// Tree are the steps of a program, when it begins them. Expression is what it wants to know; nothing else
	// happens then.
	Tree       json.RawMessage `json:"tree,omitempty"`
	Expression string          `json:"expression,omitempty"`
	// Day is like that of a [ModelCall]: branches ask nobody, so it is asked before they begin.
	Day *DayAllowance `json:"day,omitempty"`
	// Resumes tells that the walk goes on in another run: the steps that it is in begin there again, and
	// nothing else happens.
	Resumes bool `json:"reopens,omitempty"`
	// Suspended are the calls for which a branch ends before its steps do.
	Suspended []string `json:"suspends,omitempty"`
	// Unfinished are those whose step did not finish, FailedStep is the one before this that did not.
	Unfinished []Lane      `json:"lanes,omitempty"`
	FailedStep *FailedStep `json:"broken,omitempty"`
	// AfterCall is set by the activity of the call before, where that goes on by itself.
	AfterCall bool `json:"-"`
}

// Advanced is what comes next. With nothing set the steps are at their end.
type Advanced struct {
	Seq    uint64          `json:"seq"`
	Cursor pipeline.Cursor `json:"cursor"`
	Active *ActiveStep     `json:"leaf,omitempty"`
	// Prompts tells that the record has what the leaf is asked.
	Prompts  bool              `json:"asks,omitempty"`
	Answer   *ModelAnswer      `json:"answer,omitempty"` // has the call of a leaf that is one
	Branches *Branches         `json:"fan,omitempty"`
	Exceeded *ExceededLimit    `json:"excess,omitempty"` // is to be asked about before the branches begin
	Sleep    time.Duration     `json:"sleep,omitempty"`
	Failed   *pipeline.Failure `json:"failed,omitempty"`
	// CallEnded tells that the call before has come to its end, and has found this out: also if that was not heard of.
	CallEnded bool `json:"called,omitempty"`
	// Value is what an expression comes to.
	Value json.RawMessage `json:"value,omitempty"`
	// Usage is what model calls of the step that failed have used, and of subagents whose lanes were taken over.
	Usage []Usage `json:"usage,omitempty"`
}

// prefix begins the ids of steps of a program's.
func (w *Position) prefix() string {
	if w == nil || w.Number == 0 {
		return ""
	}
	return fmt.Sprintf("do/%d/", w.Number)
}

func (a Advanced) ends() bool { return a.Active == nil && a.Branches == nil && a.Sleep == 0 }

// interpreter executes the steps of an agent that is a pipeline, or of a step that a program does.
type interpreter struct {
	run      *run
	position *Position // the position; nil = the agent is no pipeline
	// chained is the answer to the next advance, if the activity of the call before has found it.
	chained *Advanced
	tree    []byte // the steps of a program's step, until an advance has written them down
}

// restorePosition takes the walk up where the execution or the run before this one left it, or at its beginning.
func (r *run) restorePosition() {
	switch {
	case r.pipeline.position != nil:
	case r.in.Resume != nil && r.in.Resume.Position != nil:
		r.pipeline.position = r.in.Resume.Position
		r.pipeline.position.Advances = 0
	case r.in.Steps:
		r.pipeline.position = &Position{Origin: r.in.Run.ID, Input: r.in.Input, Child: r.child.branch(), Event: &pipeline.Event{Kind: pipeline.EventBegun}}
		r.pipeline.position.Cursor.Home = r.outputPrefix()
	}
	if r.pipeline.position != nil {
		r.answerMessage = r.pipeline.position.LastAnswer
	}
}

// outputPrefix is where the outputs of a subagent stand: not among those of the agent that it works for, nor of another one.
func (r *run) outputPrefix() string {
	if r.child == nil {
		return ""
	}
	return agents.AgentPrefix + r.child.CallID
}

// steps goes on until the walk is at its end. It fails only to continue as new.
func (p *interpreter) steps(ctx workflow.Context) (ending, error) {
	if !p.run.log.begun() && p.run.in.Resume != nil {
		if end, over := p.reopen(ctx); over {
			return end, nil
		}
	}
	for {
		if p.position.Event == nil {
			if end, over, err := p.runActiveStep(p.compensationCtx(ctx)); over || err != nil {
				return end, err
			}
		}
		ahead := p.chained != nil // then the safe point is behind the advance
		if !ahead {
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
		next, err := p.advance(p.compensationCtx(ctx))
		switch {
		case err != nil:
			return p.run.failure(p.compensationCtx(ctx), err), nil
		case next.ends():
			return p.endOfSteps(ctx, next), nil
		case ahead:
			if err := p.run.safePoint(p.compensationCtx(ctx)); err != nil {
				return ending{}, err
			}
		}
	}
}

// compensationCtx is the context of what is done.
func (p *interpreter) compensationCtx(ctx workflow.Context) workflow.Context {
	if !p.run.isCompensating() {
		return ctx
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return ctx
}

// endOfSteps is how the run ends with its steps.
func (p *interpreter) endOfSteps(ctx workflow.Context, last Advanced) ending {
	switch then := p.position.End; {
	case then != nil:
		return then.ending()
	case last.Failed != nil && ctx.Err() != nil:
		return ending{outcome: OutcomeCancelled}
	case last.Failed != nil:
		return endWith(*last.Failed)
	}
	return ending{outcome: OutcomeSuccess}
}

// noteFailedStep notes a step that failed, for what comes behind it.
func (r *run) noteFailedStep(s Step, steered []uint64) {
	if r.pipeline.position != nil {
		r.log.Failed = &FailedStep{ID: s.ID, Name: s.Name, Closes: s.Closes, After: s.After, Place: s.Place, Steered: steered}
	}
}

// stepReopen is the first step of a run that goes on with a walk, stepAdvance that of one that begins a walk.
const (
	stepReopen  = "reopen"
	stepAdvance = "advance/1"
)

// firstStepID is the id of the run's first step.
func (r *run) firstStepID() string {
	switch {
	case r.in.Program != "":
		return r.ownStep("program").ID
	case r.pipeline.position == nil:
		return r.step(1, stepModel, stepModel).ID
	case r.in.Resume != nil:
		return r.ownStep(stepReopen).ID
	}
	return r.ownStep(stepAdvance).ID
}

// reopen begins the run that goes on with a walk, and does what was decided about the calls that it
// has waited for. over tells that the run ends with it.
func (p *interpreter) reopen(ctx workflow.Context) (end ending, over bool) {
	in := Advance{Step: p.run.ownStep(stepReopen), Position: *p.position, Resumes: true}
	opening, _ := workflow.NewDisconnectedContext(ctx) // what is done about a cancel comes behind the beginning
	var next Advanced
	if err := p.runAdvance(opening, in, &next); err != nil {
		return p.run.failure(ctx, err), true
	}
	w := p.run.in.Resume
	switch {
	case p.position.Branches != nil && w.Exceeded == nil:
		return ending{}, false // its branches have the calls
	case w.failsRun():
		return p.onStepEnd(ctx, ending{outcome: OutcomeError, code: CodeApprovalExpired, message: "nobody decided in time"})
	}
	if calls := w.calls(); len(calls) > 0 {
		if end, over = p.run.applyDecisions(ctx, w, p.run.step(p.run.turn, stepTools, stepTools)); over {
			return p.onStepEnd(ctx, end)
		}
	}
	if l := p.position.Active; l != nil && l.CallID != "" {
		return p.onStepEnd(ctx, ending{outcome: OutcomeSuccess})
	}
	p.run.turn++
	return ending{}, false
}

// runActiveStep does what the walk has come to. over tells that the run ends with it. It fails only to continue as new.
func (p *interpreter) runActiveStep(ctx workflow.Context) (end ending, over bool, err error) {
	w := p.position
	end, over = p.run.exhausted(ctx)
	again := w.Branches != nil && w.Branches.Suspended && ctx.Err() != nil // branches that have done something
	switch {
	case over && !again:
	case w.Branches != nil:
		end, over, err = p.runBranches(ctx)
	case w.Active != nil && w.Active.CallID != "":
		end, over, err = p.runCall(ctx)
	case w.Active != nil:
		end, over, err = p.runAgent(ctx)
	default:
		end, over = p.sleep(ctx)
		return end, over, nil
	}
	switch {
	case err != nil:
		return end, over, err
	case !over:
		end = ending{outcome: OutcomeSuccess}
	}
	end, over = p.onStepEnd(ctx, end)
	return end, over, nil
}

// sleep waits until the walk goes on, but not for longer than the run has time.
func (p *interpreter) sleep(ctx workflow.Context) (end ending, over bool) {
	if workflow.Sleep(ctx, earlier(p.position.Wake, p.run.budget.Deadline).Sub(workflow.Now(ctx))) != nil {
		return p.onStepEnd(ctx, ending{outcome: OutcomeCancelled})
	}
	if p.run.budget.Deadline.Before(p.position.Wake) {
		return p.onStepEnd(ctx, p.run.durationEnding())
	}
	p.position.Event = &pipeline.Event{Kind: pipeline.EventWoken}
	return ending{}, false
}

// runCall makes the call of a step, unless that waits already, and waits for who decides about it.
func (p *interpreter) runCall(ctx workflow.Context) (end ending, over bool, err error) {
	if answer := p.position.Answer; answer != nil {
		p.position.Answer = nil
		if end, over = p.run.makeCalls(ctx, *answer); over {
			return end, true, nil
		}
		p.run.turn++
	}
	if p.run.interrupts.held != nil {
		return p.run.continueHeld(ctx)
	}
	return ending{}, false, nil
}

// runAgent runs the agent of a step, turn by turn.
func (p *interpreter) runAgent(ctx workflow.Context) (end ending, over bool, err error) {
	for ; ; p.run.turn++ {
		if p.run.interrupts.held == nil {
			if l := p.position.Active; l.Turns >= l.Limits.Turns {
				return limit(CodeLimitTurns, "the agent reached its limit of %d turns", l.Limits.Turns), true, nil
			}
			if err := p.run.safePoint(ctx); err != nil {
				return ending{}, false, err
			}
			if end, over = p.run.checkSoftLimits(ctx); !over && p.run.interrupts.held == nil {
				p.position.Active.Turns++
				end, over = p.run.takeTurn(ctx)
			}
			if over {
				p.run.turn++
				return end, true, nil
			}
		}
		if p.run.interrupts.held != nil {
			if end, over, err := p.run.continueHeld(ctx); over || err != nil {
				return end, over, err
			}
		}
	}
}

// isDoneDespiteCancel tells whether the step that the walk is at has come to its end, with nothing left to do, although the
// run is cancelled: then it is compensated for like others.
func (r *run) isDoneDespiteCancel(left int) bool { return r.activeStep() != nil && left == 0 }

// onStepEnd takes in how the thing to do has ended: with an event for the walk, as a rule. over tells that the
// run ends with it.
func (p *interpreter) onStepEnd(ctx workflow.Context, end ending) (_ ending, over bool) {
	w := p.position
	if end.waits != nil {
		return end, true
	}
	p.run.interrupts.unhold() // the turn ended before its interrupts were told
	switch {
	case end.code == ErrorFenced, end.code == ErrorLogLost:
		return end, true
	case end.outcome == OutcomeCancelled, !end.ofStep && (end.code == CodeLimitTokens || end.code == CodeLimitCost), end.refused, end.outcome != OutcomeSuccess && p.run.overdue(ctx):
		return p.compensate(ctx, end)
	case end.outcome == OutcomeError:
		why := end.why()
		w.Event = &pipeline.Event{Kind: pipeline.EventFailed, Failure: &why}
	case w.Event == nil:
		w.Event, w.Answered = &pipeline.Event{Kind: pipeline.EventDone}, p.run.answerMessage
		if p.run.child != nil && p.run.child.BranchPath == "" {
			w.LastAnswer = p.run.answerMessage
		}
	}
	return ending{}, false
}

func (r *run) overdue(ctx workflow.Context) bool { return r.budget.overdue(workflow.Now(ctx)) }

func (r *run) durationEnding() ending {
	return limit(CodeLimitDuration, "the run reached its limit of %s", r.in.Limits.Duration)
}

var timeout = pipeline.Failure{Code: "timeout", Message: "the step took too long"}
