package runs

import "time"

// MaxReminders bounds the reminders of one approval.
const MaxReminders = 50

// NextTime returns when time next changes a call: it expires, is escalated, or people are reminded;
// zero = never.
func (s *Interrupts) NextTime() time.Time {
	var next time.Time
	for i := range s.Items {
		c := &s.Items[i]
		if c.Decision != nil || !c.AsksPeople() {
			continue
		}
		next = Earlier(next, c.Expires)
		if c.Approval == nil {
			continue
		}
		if c.Escalations < len(c.Approval.Escalate) {
			next = Earlier(next, c.Since(s.Opened).Add(c.Approval.Escalate[c.Escalations]))
		}
		if c.Approval.Remind > 0 && c.Reminded < MaxReminders {
			next = Earlier(next, c.Since(s.Opened).Add(time.Duration(c.Reminded+1)*c.Approval.Remind))
		}
	}
	return next
}

// ApplyTime expires calls, escalates them, and reminds people, as of now. Events that were missed
// while no worker ran are one.
func (s *Interrupts) ApplyTime(now time.Time) {
	var expired, escalated, reminded []*Interrupt
	for i := range s.Items {
		c := &s.Items[i]
		switch {
		case c.Decision != nil || !c.AsksPeople():
			continue
		case c.expired(now):
			if c.Approval != nil { // missed escalations count: the notice tells how far the approval came
				c.Escalations = c.Approval.escalations(c.Expires.Sub(c.Since(s.Opened)))
			}
			c.Decision = &Decision{CallID: c.ID, Kind: DecisionExpire, Question: c.number()}
			expired = append(expired, c)
			continue
		case c.Approval == nil:
			continue
		}
		open := now.Sub(c.Since(s.Opened))
		if n := c.Approval.escalations(open); n > c.Escalations {
			c.Escalations, escalated = n, append(escalated, c)
		}
		if n := c.Approval.reminders(open); n > c.Reminded {
			c.Reminded, reminded = n, append(reminded, c)
		}
	}
	s.notify(EventExpired, now, expired...)
	s.notify(EventEscalated, now, escalated...)
	s.notify(EventReminded, now, reminded...)
}

func (c *Interrupt) expired(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

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
