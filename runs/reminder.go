package runs

import "time"

// MaxReminders bounds the reminders of one approval.
const MaxReminders = 50

// NextTime returns when time next changes a call: it expires, is escalated, or approvers are
// reminded; zero = never.
func (s *Interrupts) NextTime() time.Time {
	var next time.Time
	for i := range s.Items {
		item := &s.Items[i]
		if item.Decision != nil || !item.AsksPeople() {
			continue
		}
		next = Earlier(Earlier(next, item.Expires), item.EscalatesAt(s.OpenedAt))
		if item.Approval == nil {
			continue
		}
		if item.Approval.Remind > 0 && item.Reminded < MaxReminders {
			next = Earlier(next, item.Since(s.OpenedAt).Add(time.Duration(item.Reminded+1)*item.Approval.Remind))
		}
	}
	return next
}

// EscalatesAt returns when the approval escalates next; zero = never. openedAt is when the interrupts
// of the run were announced.
func (i *Interrupt) EscalatesAt(openedAt time.Time) time.Time {
	if i.Decision != nil || i.Approval == nil || i.Escalations >= len(i.Approval.Escalate) {
		return time.Time{}
	}
	return i.Since(openedAt).Add(i.Approval.Escalate[i.Escalations])
}

// ApplyTime expires calls, escalates them, and reminds approvers, as of now. Events that were
// missed while no worker ran are one.
func (s *Interrupts) ApplyTime(now time.Time) {
	var expired, escalated, reminded []*Interrupt
	for i := range s.Items {
		item := &s.Items[i]
		switch {
		case item.Decision != nil || !item.AsksPeople():
			continue
		case item.expired(now):
			if item.Approval != nil { // missed escalations count: the notice tells how far the approval came
				item.Escalations = item.Approval.escalations(item.Expires.Sub(item.Since(s.OpenedAt)))
			}
			item.Decision = &Decision{CallID: item.ID, Kind: DecisionExpire, Question: item.number()}
			expired = append(expired, item)
			continue
		case item.Approval == nil:
			continue
		}
		open := now.Sub(item.Since(s.OpenedAt))
		if n := item.Approval.escalations(open); n > item.Escalations {
			item.Escalations, escalated = n, append(escalated, item)
		}
		if n := item.Approval.reminders(open); n > item.Reminded {
			item.Reminded, reminded = n, append(reminded, item)
		}
	}
	s.notify(EventExpired, now, expired...)
	s.notify(EventEscalated, now, escalated...)
	s.notify(EventReminded, now, reminded...)
}

func (i *Interrupt) expired(now time.Time) bool { return !i.Expires.IsZero() && !now.Before(i.Expires) }

// escalations returns how many are due when the approval has been open for a time.
func (a *Approval) escalations(open time.Duration) int {
	come := 0
	for _, after := range a.Escalate {
		if after <= open {
			come++
		}
	}
	return come
}

// reminders returns how many are due when the approval has been open for a time.
func (a *Approval) reminders(open time.Duration) int {
	if a.Remind <= 0 {
		return 0
	}
	return int(min(open/a.Remind, MaxReminders))
}
