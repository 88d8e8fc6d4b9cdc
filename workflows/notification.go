package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Notification asks ActivityNotify to make known what has happened to questions that a thread waits with. It is
// asked at least once, and may be asked while a late attempt at an earlier notice is still under way.
type Notification struct {
	Run      RunRef            `json:"run"`
	Agent    string            `json:"agent"`
	Revision string            `json:"revision"`
	Step     string            `json:"step,omitempty"`
	Tree     uint64            `json:"tree,omitempty"`
	Event    NotificationEvent `json:"event"`
	// Number counts the notices about the questions of a run, from 1: what an earlier one tells is outdated.
	Number    int       `json:"n"`
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
	Number int               `json:"n"`
	At     time.Time         `json:"at"`
	Calls  []int             `json:"calls"` // by their place among those that wait
}

// addNews keeps what has happened to calls until it is made known. The same of other calls is added to what
// waits, but for the first, which may be under way: so there is one of each kind at most, and that. The client's
// own calls are nobody else's business.
func (w *Interrupts) addNews(event NotificationEvent, now time.Time, calls ...*Interrupt) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *Interrupt) bool { return !c.asksPeople() })
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

// noteOpened notes that people are asked, unless that was known before.
func (w *Interrupts) noteOpened() {
	var asked []*Interrupt
	for i := range w.Calls {
		if c := &w.Calls[i]; c.asksPeople() && !c.Announced {
			c.Announced = true
			asked = append(asked, c)
		}
	}
	w.addNews(EventOpened, w.Opened, asked...)
}

// maxNews is how many bytes all that waits may take.
func (w *Interrupts) maxNews() int { return 7 * (96 + 3*len(w.Calls)) }

// notice is the first that waits. It has no calls if all that it is about has been decided meanwhile: that is
// the next one's to tell.
func (w *Interrupts) notice(thread RunRef) Notification {
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

// give gives a notice, as often as it takes. One that fails for good is nobody's to repair here; those behind it
// tell the same.
func give(ctx workflow.Context, n Notification) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: string(n.Event),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	if err := workflow.ExecuteActivity(ctx, ActivityNotify, n).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a notice was not given", n.Run.logged(n.Agent, "event", n.Event, "error", err)...)
	}
}

func (w *Interrupts) isTold() bool { return !w.isUntold() }

func (w *Interrupts) isUntold() bool { return w != nil && w.After > 0 && len(w.Pending) > 0 }

// noticesID is another one for each set of questions of the thread, and each part of what is told of them.
func noticesID(ctx workflow.Context, w *Interrupts) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", w.RunID, w.MessageID, w.Pending[0].Number))
	return workflow.GetInfo(ctx).WorkflowExecution.ID + "/notices/" + hex.EncodeToString(sum[:8])
}

// NotificationsInput starts TypeNotices.
type NotificationsInput struct {
	Thread     RunRef      `json:"thread"`
	Interrupts *Interrupts `json:"waits"`
}

// SendNotifications is approval.notices.v1: it gives the notices about questions of a thread that has gone on, however
// long that takes.
func SendNotifications(ctx workflow.Context, in NotificationsInput) error {
	for w := in.Interrupts; w.isUntold(); w.Pending = w.Pending[1:] {
		if n := w.notice(in.Thread); len(n.Calls) > 0 {
			give(ctx, n)
		}
	}
	return nil
}
