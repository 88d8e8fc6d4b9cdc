package runs

// AdoptDecisions takes over what people have said about calls, and since when they are asked about them.
func (w *Interrupts) AdoptDecisions(said *Interrupts) {
	for _, c := range said.Of(1).Calls {
		if own := w.Find(c.ID); own != nil {
			within := own.Child
			*own = c
			own.Child = within
			if c.Announced {
				own.Opened = c.Since(said.Opened)
			}
		}
	}
	w.Notified = max(w.Notified, said.Notified)
}

// Adopt adds what a subagent waits for, and those below it.
func (w *Interrupts) Adopt(s SuspendedChild, below *Interrupts) {
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

// Of is what the i-th suspended subagent waits for, with those below it; 0 = the run's own agent.
func (w *Interrupts) Of(i int) *Interrupts {
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
	AnswerID string `json:"answerId"`
	// Subagents are the agents that these calls hand work to.
	Subagents []AgentRef `json:"subagents,omitempty"`
	// Branch is the branch that the subagent is, if it works for no call. Walk is how far it has come in its steps, and
	// Step the one among them whose definition the calls are under, if one is.
	Branch   *int      `json:"branch,omitempty"`
	Position *Position `json:"position,omitempty"`
	Step     string    `json:"step,omitempty"`
	Tree     uint64    `json:"tree,omitempty"`
	// Parent is the suspended subagent that has handed it the work, from 1; 0 = the run's own agent has.
	Parent int `json:"parent,omitempty"`
}
