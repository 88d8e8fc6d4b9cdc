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
	// Calls are the interrupts of the event, as they are now.
	Items []Interrupt `json:"calls"`
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

// notify adds a notification about calls. It joins a pending one of the same event, except for the
// first, which may be under way: so at most one of each event is pending, and that one. Calls of
// the client's own tools are left out.
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
	news := &s.Pending[at]
	news.At = now
	for i := range s.Items {
		if slices.Contains(calls, &s.Items[i]) && !slices.Contains(news.Calls, i) {
			news.Calls = append(news.Calls, i)
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
	news := s.Pending[0]
	thread.ID = s.RunID
	n := Notification{
		Run: thread, Agent: s.Agent, Revision: s.Revision, Step: s.Step, Tree: s.Tree, Event: news.Event, Number: news.Number,
		OpenedAt: s.OpenedAt, At: news.At, MessageID: s.MessageID, After: s.AnnouncedBy,
	}
	passes := news.Event == EventVoted || news.Event == EventReminded || news.Event == EventEscalated
	for _, i := range news.Calls {
		if item := s.Items[i]; !passes || item.Decision == nil {
			n.Items = append(n.Items, item)
		}
	}
	return n
}

// IsNotified reports whether no notification is pending.
func (s *Interrupts) IsNotified() bool { return !s.HasPending() }

// HasPending reports whether notifications are to be sent. The interrupts must have been announced.
func (s *Interrupts) HasPending() bool { return s != nil && s.AnnouncedBy > 0 && len(s.Pending) > 0 }
