package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"
)

// A call may hand the thread over to another agent. It is made behind all others of its turn, when people have
// decided about those: they are done by the agent that has asked for them. From then on the run is the other
// agent's, with its model, tools and rules from the next turn on. The run goes on counting.

// MaxHandoffs is how often a run may hand its thread over.
const MaxHandoffs = 10

// Handoff is a call that hands the thread over.
type Handoff struct {
	// CallID is the call, Tool what the model calls it, Index its place in the message.
	CallID string        `json:"call"`
	Tool   string        `json:"tool"`
	Index  int           `json:"index"`
	To     HandoffTarget `json:"to"`
	// Waited is the call, decided about, where it still waits for others of its turn.
	Waited *Interrupt `json:"waited,omitempty"`
}

// HandoffTarget is an agent that takes a thread over, as it is when the call is asked for.
type HandoffTarget struct {
	AgentRef
	OnNewInput      OpenPolicy `json:"onNewInput,omitempty"`
	OnMissingResult OpenPolicy `json:"onMissing,omitempty"`
}

// HandoverTrail is how a thread has come to a run's agent.
type HandoverTrail struct {
	// From are the agents that have handed it over and did not get it back, up to maxFrom of them.
	From []string      `json:"from"`
	To   HandoffTarget `json:"to"`
}

// maxHanded is what that takes, in bytes of the message that carries a run on.
const (
	maxHanded = 1 << 10
	maxFrom   = 8
)

// is tells whether the call is the one at some place in the message.
func (h *Handoff) is(index int) bool { return h != nil && h.Index == index }

// decidedHandoff is the hand-off of a turn whose calls are decided about.
func (w *Interrupts) decidedHandoff() *Handoff {
	if w.Handoff == nil {
		return nil
	}
	h := *w.Handoff
	if at := slices.IndexFunc(w.Calls, func(c Interrupt) bool { return c.Child == 0 && h.is(c.Index) }); at >= 0 {
		h.Waited = &w.Calls[at]
	}
	return &h
}

// callHandoff hands the thread over, if a call of the turn does and people have to decide about none: then it goes
// on to wait. over tells that the run ends with it.
func (r *run) callHandoff(ctx workflow.Context, t toolCalls, waits *Interrupts) (end ending, over bool) {
	h := waits.Handoff
	if h == nil || waits.asksPeople() {
		return ending{}, false
	}
	waits.Handoff = nil
	c := call{index: h.Index, id: h.CallID, tool: h.Tool}
	if h.Waited != nil {
		c = h.Waited.decided(nil)
	}
	c.handsTo = &h.To
	t.calls = []call{c}
	return r.callTools(ctx, t, waits)
}

// handOver makes the run that of another agent. Of the limits of both the tighter hold for what is left of it.
func (r *run) handOver(ctx workflow.Context, by HandoffTarget) {
	was, limits := r.in, by.Limits
	limits.Turns, limits.Tokens = min(limits.Turns, was.Limits.Turns), min(limits.Tokens, was.Limits.Tokens)
	limits.Duration = min(limits.Duration, was.Limits.Duration)
	if was.Limits.Cost > 0 && (limits.Cost == 0 || was.Limits.Cost < limits.Cost) {
		limits.Cost = was.Limits.Cost
	}
	r.budget.extend(limits.Duration - was.Limits.Duration)
	r.in.Agent, r.in.Revision, r.in.Limits = by.Agent, by.Revision, limits
	r.in.OnNewInput, r.in.OnMissingResult = by.OnNewInput, by.OnMissingResult
	r.in.HandedOver = was.HandedOver.behind(was.Agent, by)
	r.handoffs++
	_ = workflow.UpsertTypedSearchAttributes(ctx, AttributeAgent.ValueSet(by.Agent)) // for Temporal's UI only
}

// behind is how a thread has come to an agent that one has handed it over to.
func (h *HandoverTrail) behind(by string, to HandoffTarget) *HandoverTrail {
	next := &HandoverTrail{To: to}
	if h != nil {
		next.From = slices.DeleteFunc(slices.Clone(h.From), func(name string) bool { return name == by || name == to.Agent })
	}
	next.From = append(next.From, by)
	next.From = next.From[max(0, len(next.From)-maxFrom):]
	return next
}

// asked is a run as it begins behind one whose thread was handed over so: if its agent has handed the thread over
// since the run was asked for, it is that of the agent that has it.
func (h *HandoverTrail) asked(in RunInput) RunInput {
	switch {
	case h == nil:
	case slices.Contains(h.From, in.Agent):
		in.Agent, in.Revision, in.Limits = h.To.Agent, h.To.Revision, h.To.Limits
		in.Steps, in.Program = false, ""
		in.OnNewInput, in.OnMissingResult = h.To.OnNewInput, h.To.OnMissingResult
		in.HandedOver = h
	case in.Agent == h.To.Agent:
		in.HandedOver = h
	}
	return in
}
