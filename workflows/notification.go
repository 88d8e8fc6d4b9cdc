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

// Notice asks ActivityNotify to make known what has happened to questions that a thread waits with. It is
// asked at least once, and may be asked while a late attempt at an earlier notice is still under way.
type Notice struct {
	Run      Run         `json:"run"`
	Agent    string      `json:"agent"`
	Revision string      `json:"revision"`
	Step     string      `json:"step,omitempty"`
	Tree     uint64      `json:"tree,omitempty"`
	Event    NoticeEvent `json:"event"`
	// Number counts the notices about the questions of a run, from 1: what an earlier one tells is outdated.
	Number    int       `json:"n"`
	Opened    time.Time `json:"opened"` // when the calls were asked for
	At        time.Time `json:"at"`     // when it happened
	MessageID string    `json:"messageId"`
	// Calls are those that it happened to, as they are now.
	Calls []Waiting `json:"calls"`
	// After is a record that the log has to have: the run's terminal one.
	After uint64 `json:"after"`
}

// NoticeEvent is what has happened.
type NoticeEvent string

// What may have happened.
const (
	NoticeOpened    NoticeEvent = "opened"
	NoticeReminded  NoticeEvent = "reminded"
	NoticeEscalated NoticeEvent = "escalated"
	NoticeVoted     NoticeEvent = "voted" // one more approves, and others have to
	NoticeDecided   NoticeEvent = "decided"
	NoticeExpired   NoticeEvent = "expired"
)

// News is a notice that was not given yet. It goes from execution to execution, so it is small: what it is
// about stands in the Waits.
type News struct {
	Event  NoticeEvent `json:"event"`
	Number int         `json:"n"`
	At     time.Time   `json:"at"`
	Calls  []int       `json:"calls"` // by their place among those that wait
}

// addNews keeps what has happened to calls until it is made known. The same of other calls is added to what
// waits, but for the first, which may be under way: so there is one of each kind at most, and that. The client's
// own calls are nobody else's business.
func (w *Waits) addNews(event NoticeEvent, now time.Time, calls ...*Waiting) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *Waiting) bool { return !c.asksPeople() })
	if len(calls) == 0 {
		return
	}
	at := 1 + slices.IndexFunc(w.News[min(1, len(w.News)):], func(n News) bool { return n.Event == event })
	if at == 0 {
		w.Noticed++
		w.News = append(w.News, News{Event: event, Number: w.Noticed})
		at = len(w.News) - 1
	}
	news := &w.News[at]
	news.At = now
	for i := range w.Calls {
		if slices.Contains(calls, &w.Calls[i]) && !slices.Contains(news.Calls, i) {
			news.Calls = append(news.Calls, i)
		}
	}
}

// noteOpened notes that people are asked, unless that was known before.
func (w *Waits) noteOpened() {
	var asked []*Waiting
	for i := range w.Calls {
		if c := &w.Calls[i]; c.asksPeople() && !c.Told {
			c.Told = true
			asked = append(asked, c)
		}
	}
	w.addNews(NoticeOpened, w.Opened, asked...)
}

// maxNews is how many bytes all that waits may take.
func (w *Waits) maxNews() int { return 7 * (96 + 3*len(w.Calls)) }

// notice is the first that waits. It has no calls if all that it is about has been decided meanwhile: that is
// the next one's to tell.
func (w *Waits) notice(thread Run) Notice {
	news := w.News[0]
	thread.ID = w.RunID
	n := Notice{
		Run: thread, Agent: w.Agent, Revision: w.Revision, Step: w.Step, Tree: w.Tree, Event: news.Event, Number: news.Number,
		Opened: w.Opened, At: news.At, MessageID: w.MessageID, After: w.After,
	}
	passes := news.Event == NoticeVoted || news.Event == NoticeReminded || news.Event == NoticeEscalated
	for _, i := range news.Calls {
		if c := w.Calls[i]; !passes || c.Decision == nil {
			n.Calls = append(n.Calls, c)
		}
	}
	return n
}

// give gives a notice, as often as it takes. One that fails for good is nobody's to repair here; those behind it
// tell the same.
func give(ctx workflow.Context, n Notice) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: string(n.Event),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	if err := workflow.ExecuteActivity(ctx, ActivityNotify, n).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a notice was not given", n.Run.logged(n.Agent, "event", n.Event, "error", err)...)
	}
}

func (w *Waits) isTold() bool { return !w.isUntold() }

func (w *Waits) isUntold() bool { return w != nil && w.After > 0 && len(w.News) > 0 }

// noticesID is another one for each set of questions of the thread, and each part of what is told of them.
func noticesID(ctx workflow.Context, w *Waits) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", w.RunID, w.MessageID, w.News[0].Number))
	return workflow.GetInfo(ctx).WorkflowExecution.ID + "/notices/" + hex.EncodeToString(sum[:8])
}

// Untold starts TypeNotices.
type Untold struct {
	Thread Run    `json:"thread"`
	Waits  *Waits `json:"waits"`
}

// GiveNotices is approval.notices.v1: it gives the notices about questions of a thread that has gone on, however
// long that takes.
func GiveNotices(ctx workflow.Context, in Untold) error {
	for w := in.Waits; w.isUntold(); w.News = w.News[1:] {
		if n := w.notice(in.Thread); len(n.Calls) > 0 {
			give(ctx, n)
		}
	}
	return nil
}
