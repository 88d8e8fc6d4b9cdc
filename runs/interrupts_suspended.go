package runs

// AdoptDecisions takes over the thread's decisions about the interrupts of a child, and when they
// opened. decided are the thread's interrupts of that child, as its first suspended one; s are
// those with which the child ended.
func (s *Interrupts) AdoptDecisions(decided *Interrupts) {
	for _, item := range decided.OfChild(1).Items {
		if own := s.Find(item.ID); own != nil {
			within := own.Child
			*own = item
			own.Child = within
			if item.Announced {
				own.OpenedAt = item.Since(decided.OpenedAt)
			}
		}
	}
	s.Notified = max(s.Notified, decided.Notified)
}

// Adopt adds a suspended child with its interrupts, and those of the children below it. It
// renumbers Interrupt.Child and SuspendedChild.Parent, which are indexes into Suspended. Further
// notifications get numbers after those of the child.
func (s *Interrupts) Adopt(child SuspendedChild, below *Interrupts) {
	s.Suspended = append(s.Suspended, child)
	at := len(s.Suspended)
	for _, deeper := range below.Suspended {
		deeper.Parent += at
		s.Suspended = append(s.Suspended, deeper)
	}
	for _, item := range below.Items {
		item.Child += at
		s.Items = append(s.Items, item)
	}
	s.Notified = max(s.Notified, below.Notified)
}

// OfChild returns a copy of the interrupts of the i-th suspended child, from 1, with those of the
// children below it: what the child itself had. It is the inverse of Adopt.
func (s *Interrupts) OfChild(i int) *Interrupts {
	child := s.Suspended[i-1]
	below := &Interrupts{MessageID: child.AnswerID, Subagents: child.Subagents, Position: child.Position}
	places := map[int]int{i: 0}
	for j, deeper := range s.Suspended {
		if within, ok := places[deeper.Parent]; ok && j >= i {
			deeper.Parent = within
			below.Suspended = append(below.Suspended, deeper)
			places[j+1] = len(below.Suspended)
		}
	}
	for _, item := range s.Items {
		if within, ok := places[item.Child]; ok {
			item.Child = within
			below.Items = append(below.Items, item)
		}
	}
	return below
}

// Source tells which agent made the call of an interrupt.
func (s *Interrupts) Source(item Interrupt) InterruptSource {
	if item.Child == 0 {
		return InterruptSource{Agent: s.Agent, Revision: s.Revision, Step: s.Step, Tree: s.Tree, QuestionRecord: s.Position.question(), MessageID: s.MessageID}
	}
	child := s.Suspended[item.Child-1]
	by := child.AgentRef
	if child.Position != nil && child.Position.Active != nil {
		by = child.Position.Active.AgentRef
	}
	return InterruptSource{
		Agent: by.Agent, Revision: by.Revision, Step: child.Step, Tree: child.Tree,
		QuestionRecord: child.Position.question(), MessageID: child.AnswerID, CallID: child.CallID,
	}
}
