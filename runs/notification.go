package runs

import (
	"slices"
	"time"
)

// Notification asks ActivityNotify to make known what has happened to questions that a thread waits with. It is
// asked at least once, and may be asked while a late attempt at an earlier notice is still under way.
type Notification struct {
	Run      Ref               `json:"run"`
	Agent    string            `json:"agent"`
	Revision string            `json:"revision"`
	Step     string            `json:"step,omitempty"`
	Tree     uint64            `json:"tree,omitempty"`
	Event    NotificationEvent `json:"event"`
	// Number counts the notices about the questions of a run, from 1: what an earlier one tells is outdated.
	Number    int       `json:"number"`
	Opened    time.Time `json:"opened"` // when the calls were asked for
	At        time.Time `json:"at"`     // when it happened
	MessageID string    `json:"messageId"`
	// Calls are those that it happened to, as they are now.
	Calls []Interrupt `json:"calls"`
	// After is a record that the log has to have: the run's terminal one.
	After uint64 `json:"after"`
}

// NotificationEvent is what has happened.
type NotificationEvent string

// What may have happened.
const (
	EventOpened    NotificationEvent = "opened"
	EventReminded  NotificationEvent = "reminded"
	EventEscalated NotificationEvent = "escalated"
	EventVoted     NotificationEvent = "voted" // one more approves, and others have to
	EventDecided   NotificationEvent = "decided"
	EventExpired   NotificationEvent = "expired"
)

// PendingNotification is a notice that was not given yet. It goes from execution to execution, so it is small: what it is
// about stands in the Waits.
type PendingNotification struct {
	Event  NotificationEvent `json:"event"`
	Number int               `json:"number"`
	At     time.Time         `json:"at"`
	Calls  []int             `json:"calls"` // by their place among those that wait
}

// NotificationsInput starts TypeNotices.
type NotificationsInput struct {
	Thread     Ref         `json:"thread"`
	Interrupts *Interrupts `json:"interrupts"`
}

// notify keeps what has happened to calls until it is made known. The same of other calls is added to what
// waits, but for the first, which may be under way: so there is one of each kind at most, and that. The client's
// own calls are nobody else's business.
func (w *Interrupts) notify(event NotificationEvent, now time.Time, calls ...*Interrupt) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *Interrupt) bool { return !c.AsksPeople() })
	if len(calls) == 0 {
		return
	}
	at := 1 + slices.IndexFunc(w.Pending[min(1, len(w.Pending)):], func(n PendingNotification) bool { return n.Event == event })
	if at == 0 {
		w.Notified++
		w.Pending = append(w.Pending, PendingNotification{Event: event, Number: w.Notified})
		at = len(w.Pending) - 1
	}
	news := &w.Pending[at]
	news.At = now
	for i := range w.Calls {
		if slices.Contains(calls, &w.Calls[i]) && !slices.Contains(news.Calls, i) {
			news.Calls = append(news.Calls, i)
		}
	}
}

// NoteOpened notes that people are asked, unless that was known before.
func (w *Interrupts) NoteOpened() {
	var asked []*Interrupt
	for i := range w.Calls {
		if c := &w.Calls[i]; c.AsksPeople() && !c.Announced {
			c.Announced = true
			asked = append(asked, c)
		}
	}
	w.notify(EventOpened, w.Opened, asked...)
}

// maxPending is how many bytes all that waits may take.
func (w *Interrupts) maxPending() int { return 7 * (96 + 3*len(w.Calls)) }

// Notification is the first that waits. It has no calls if all that it is about has been decided meanwhile: that is
// the next one's to tell.
func (w *Interrupts) Notification(thread Ref) Notification {
	news := w.Pending[0]
	thread.ID = w.RunID
	n := Notification{
		Run: thread, Agent: w.Agent, Revision: w.Revision, Step: w.Step, Tree: w.Tree, Event: news.Event, Number: news.Number,
		Opened: w.Opened, At: news.At, MessageID: w.MessageID, After: w.After,
	}
	passes := news.Event == EventVoted || news.Event == EventReminded || news.Event == EventEscalated
	for _, i := range news.Calls {
		if c := w.Calls[i]; !passes || c.Decision == nil {
			n.Calls = append(n.Calls, c)
		}
	}
	return n
}

func (w *Interrupts) IsNotified() bool { return !w.HasPending() }

func (w *Interrupts) HasPending() bool { return w != nil && w.After > 0 && len(w.Pending) > 0 }
