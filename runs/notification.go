package runs

import (
	"slices"
	"time"
)

// Notification is the input of ActivityNotify, which tells the inbox and webhooks what happened to
// interrupts. It is sent at least once, and possibly while a late attempt at an earlier
// notification still runs.
type Notification struct {
	Run      Ref               `json:"run"`
	Agent    string            `json:"agent"`
	Revision string            `json:"revision"`
	Step     string            `json:"step,omitempty"`
	Tree     uint64            `json:"tree,omitempty"`
	Event    NotificationEvent `json:"event"`
	// Number counts the notifications about these interrupts, from 1. Earlier ones are outdated.
	Number    int       `json:"number"`
	OpenedAt  time.Time `json:"opened"` // when the interrupts were announced
	At        time.Time `json:"at"`     // when the event happened
	MessageID string    `json:"messageId"`
	// Items are the interrupts of the event, as they are now.
	Items []Interrupt `json:"items"`
	// After is the record that announced the interrupts. The activity must see it in the log.
	After uint64 `json:"after"`
}

// The events.
const (
	EventOpened    NotificationEvent = "opened"
	EventReminded  NotificationEvent = "reminded"
	EventEscalated NotificationEvent = "escalated"
	EventVoted     NotificationEvent = "voted" // an approval that does not complete the quorum
	EventDecided   NotificationEvent = "decided"
	EventExpired   NotificationEvent = "expired"
)

// NotificationsInput is the input of TypeNotifications.
type NotificationsInput struct {
	Thread     Ref         `json:"thread"`
	Interrupts *Interrupts `json:"interrupts"`
}

// notify adds a notification about interrupts. If one of the same event is pending, it adds the
// interrupts to that one, except to the first: the workflow may be sending it. Calls of the
// client's own tools are left out.
func (s *Interrupts) notify(event NotificationEvent, now time.Time, calls ...*Interrupt) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(item *Interrupt) bool { return !item.AsksPeople() })
	if len(calls) == 0 {
		return
	}
	at := 1 + slices.IndexFunc(s.Pending[min(1, len(s.Pending)):], func(n PendingNotification) bool { return n.Event == event })
	if at == 0 {
		s.Notified++
		s.Pending = append(s.Pending, PendingNotification{Event: event, Number: s.Notified})
		at = len(s.Pending) - 1
	}
	pending := &s.Pending[at]
	pending.At = now
	for i := range s.Items {
		if slices.Contains(calls, &s.Items[i]) && !slices.Contains(pending.Calls, i) {
			pending.Calls = append(pending.Calls, i)
		}
	}
}

// NoteOpened adds the notification that interrupts are open, for those that people do not know.
func (s *Interrupts) NoteOpened() {
	var asked []*Interrupt
	for i := range s.Items {
		if item := &s.Items[i]; item.AsksPeople() && !item.Announced {
			item.Announced = true
			asked = append(asked, item)
		}
	}
	s.notify(EventOpened, s.OpenedAt, asked...)
}

// maxPending returns how many bytes all pending notifications may take.
func (s *Interrupts) maxPending() int { return 7 * (96 + 3*len(s.Items)) }

// Notification returns the first pending one. It has no calls if all were decided meanwhile: the
// next notification tells that.
func (s *Interrupts) Notification(thread Ref) Notification {
	pending := s.Pending[0]
	thread.ID = s.RunID
	n := Notification{
		Run: thread, Agent: s.Agent, Revision: s.Revision, Step: s.Step, Tree: s.Tree, Event: pending.Event, Number: pending.Number,
		OpenedAt: s.OpenedAt, At: pending.At, MessageID: s.MessageID, After: s.AnnouncedBy,
	}
	omitsDecided := pending.Event == EventVoted || pending.Event == EventReminded || pending.Event == EventEscalated
	for _, i := range pending.Calls {
		if item := s.Items[i]; !omitsDecided || item.Decision == nil {
			n.Items = append(n.Items, item)
		}
	}
	return n
}

// IsNotified is the opposite of HasPending.
func (s *Interrupts) IsNotified() bool { return !s.HasPending() }

// HasPending reports whether notifications can be sent: some are pending, and the interrupts are
// announced. s may be nil.
func (s *Interrupts) HasPending() bool { return s != nil && s.AnnouncedBy > 0 && len(s.Pending) > 0 }
