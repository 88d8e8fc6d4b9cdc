package runs

// AdoptDecisions takes over the thread's decisions about the interrupts of a child, and when they
// opened. said are the thread's interrupts of that child, as its first suspended one; w are those
// with which the child ended.
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

// Adopt adds a suspended child with its interrupts, and those of the children below it. It
// renumbers Interrupt.Child and SuspendedChild.Parent, which are indexes into Suspended.
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

// Of returns a copy of the interrupts of the i-th suspended child, from 1, with those of the
// children below it: what the child itself had. It is the inverse of Adopt.
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

// Source tells which agent made the call of an interrupt.
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
