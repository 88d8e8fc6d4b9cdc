package workflows

import "go.temporal.io/sdk/workflow"

// A subagent that waits for people ends: it has no workflow meanwhile. What it waits for is a question of the
// run, like those of the run's own agent, and goes the same way. When all is decided the next run begins
// the subagent again where it was, as the work for the same call.

// SuspendedChild is a subagent that waits.
type SuspendedChild struct {
	AgentRef // as it was
	// CallID is the call that it works for, MessageID the message that has it, Index its place there.
	CallID    string `json:"callId"`
	MessageID string `json:"messageId"`
	Index     int    `json:"index"`
	// Args and Edit are those of its Branch.
	Args string `json:"args,omitempty"`
	Edit uint64 `json:"edit,omitempty"`
	// Turn is how far it has come, Said the message with the calls that wait.
	Turn     int    `json:"turn"`
	AnswerID string `json:"said"`
	// Subagents are the agents that these calls hand work to.
	Subagents []AgentRef `json:"delegates,omitempty"`
	// Branch is the branch that the subagent is, if it works for no call. Walk is how far it has come in its steps, and
	// Step the one among them whose definition the calls are under, if one is.
	Branch   *int      `json:"fork,omitempty"`
	Position *Position `json:"walk,omitempty"`
	Step     string    `json:"step,omitempty"`
	Tree     uint64    `json:"tree,omitempty"`
	// Parent is the suspended subagent that has handed it the work, from 1; 0 = the run's own agent has.
	Parent int `json:"within,omitempty"`
}

// suspendedChild is this subagent as it waits.
func (r *run) suspendedChild(w *Interrupts) *SuspendedChild {
	return &SuspendedChild{
		AgentRef: AgentRef{Agent: r.in.Agent, Revision: r.in.Revision, Limits: r.in.Limits, Steps: r.in.Steps},
		CallID:   r.child.CallID, MessageID: r.child.MessageID, Index: r.child.Index, Args: r.child.Args, Edit: r.child.Edit,
		Turn: r.turn, AnswerID: w.MessageID, Subagents: w.Subagents, Position: r.pipeline.position, Step: w.Step, Tree: w.Tree,
	}
}

// restartChild starts a subagent, also when the run is cancelled if it was suspended: what it has done is known to nobody else, and
// it compensates for it. The cancel reaches it when it has begun.
func (r *run) restartChild(ctx workflow.Context, resumes *SuspendedChild, start func(workflow.Context) workflow.ChildWorkflowFuture) workflow.ChildWorkflowFuture {
	if resumes == nil {
		return start(ctx)
	}
	lasting, cancel := workflow.NewDisconnectedContext(ctx)
	child := start(lasting)
	workflow.Go(lasting, func(lasting workflow.Context) {
		_ = child.GetChildWorkflowExecution().Get(lasting, nil)
		ctx.Done().Receive(lasting, nil)
		cancel()
	})
	return child
}

// suspendedSize is how many bytes this subagent takes as it waits for what those below it ask.
func (r *run) suspendedSize(w *Interrupts) int {
	s := r.suspendedChild(w)
	if r.child.BranchPath != "" {
		s.Branch = &r.child.Index
	}
	body, err := encode(s) //workflowcheck:ignore the same value gives the same text
	if err != nil {
		return MaxPayload
	}
	return len(body)
}

// adopt adds what a subagent waits for, and those below it.
func (w *Interrupts) adopt(s SuspendedChild, below *Interrupts) {
	w.Suspended = append(w.Suspended, s)
	at := len(w.Suspended)
	for _, deeper := range below.Suspended {
		deeper.Parent += at
		w.Suspended = append(w.Suspended, deeper)
	}
	for _, c := range below.Calls {
		c.Child += at
		w.Calls = append(w.Calls, c)
	}
}

// of is what the i-th suspended subagent waits for, with those below it; 0 = the run's own agent.
func (w *Interrupts) of(i int) *Interrupts {
	s := w.Suspended[i-1]
	below := &Interrupts{MessageID: s.AnswerID, Subagents: s.Subagents, Position: s.Position}
	places := map[int]int{i: 0}
	for j, deeper := range w.Suspended {
		if within, ok := places[deeper.Parent]; ok && j >= i {
			deeper.Parent = within
			below.Suspended = append(below.Suspended, deeper)
			places[j+1] = len(below.Suspended)
		}
	}
	for _, c := range w.Calls {
		if within, ok := places[c.Child]; ok {
			c.Child = within
			below.Calls = append(below.Calls, c)
		}
	}
	return below
}

// resumed are the calls for which suspended subagents go on to work.
func (w *Interrupts) resumed() []call {
	var calls []call
	for i := range w.Suspended {
		if s := &w.Suspended[i]; s.Parent == 0 && s.Branch == nil {
			calls = append(calls, call{index: s.Index, id: s.CallID, tool: s.Agent, delegate: &s.AgentRef, resumes: s, waits: w.of(i + 1)})
		}
	}
	return calls
}

// InterruptSource is whose call it is that waits.
type InterruptSource struct {
	Agent, Revision string
	// MessageID is the message that has the call.
	MessageID string
	// CallID is what the asker works for, if it is a subagent.
	CallID string
	// Step is the path of the step that has the definition, if one does, and Tree the record that has it.
	Step string
	Tree uint64
	// Question is the record that has what the step asks.
	Question uint64
}

// Source tells whose call it is that waits.
func (w *Interrupts) Source(c Interrupt) InterruptSource {
	if c.Child == 0 {
		return InterruptSource{Agent: w.Agent, Revision: w.Revision, Step: w.Step, Tree: w.Tree, Question: w.Position.question(), MessageID: w.MessageID}
	}
	s := w.Suspended[c.Child-1]
	by := s.AgentRef
	if s.Position != nil && s.Position.Active != nil {
		by = s.Position.Active.AgentRef
	}
	return InterruptSource{Agent: by.Agent, Revision: by.Revision, Step: s.Step, Tree: s.Tree, Question: s.Position.question(), MessageID: s.AnswerID, CallID: s.CallID}
}

// question is the record that has what the step asks that the walk is at; 0 = it asks nothing.
func (w *Position) question() uint64 {
	if w == nil || w.Active == nil || len(w.Active.Place.Prompts) == 0 {
		return 0
	}
	return w.Active.Place.Prompts[len(w.Active.Place.Prompts)-1]
}
