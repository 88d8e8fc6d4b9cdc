package workflows

import (
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

// note keeps what has happened to calls until it is made known. The same of other calls is added to what
// waits, but for the first, which may be under way: so there is one of each kind at most, and that. The client's
// own calls are nobody else's business.
func (w *Waits) note(event NoticeEvent, now time.Time, calls ...*Waiting) {
	calls = slices.DeleteFunc(slices.Clone(calls), func(c *Waiting) bool { return c.Approval == nil })
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

// noteOpened notes that people are asked.
func (w *Waits) noteOpened() {
	var asked []*Waiting
	for i := range w.Calls {
		if w.Calls[i].Approval != nil {
			asked = append(asked, &w.Calls[i])
		}
	}
	w.note(NoticeOpened, w.Opened, asked...)
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

// Nobody waits for a notice: not who decides, and not the run that goes on. Notices are given one after the
// other, each as often as it takes, beside whatever else there is to do; an execution that has to go on takes
// what is left with it.

// announce gives the notices of an execution, from its beginning to its end.
func (r *run) announce(ctx workflow.Context) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // what a run's cancel has nothing to do with
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			_ = workflow.Await(ctx, func() bool { return r.untold() != nil && !r.leaving })
			w := r.untold()
			if n := w.notice(r.in.Run); len(n.Calls) > 0 {
				r.tell(ctx, n)
			}
			w.News = w.News[1:]
		}
	})
}

// tell gives a notice. One that fails for good is nobody's to repair here; those behind it tell the same.
func (r *run) tell(ctx workflow.Context, n Notice) {
	r.telling = true
	defer func() { r.telling = false }()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, Summary: string(n.Event),
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	if err := workflow.ExecuteActivity(ctx, ActivityNotify, n).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a notice was not given", "event", n.Event, "error", err)
	}
}

// untold are the calls about which there are notices to give: those of the run before come first. Those of
// the run's own are nobody's business before it has ended with them.
func (r *run) untold() *Waits {
	for _, w := range []*Waits{r.in.Resume, r.answered, r.held, r.waits} {
		if w != nil && w.After > 0 && len(w.News) > 0 {
			return w
		}
	}
	return nil
}

const (
	// tellInHurry is how long an execution that goes on waits for the notice that is under way, so that it
	// need not be given twice.
	tellInHurry = time.Second
	// tellAtEnd is how long an execution waits for its last notices when there is none behind it: no longer than
	// clients may wait for a run that has ended to make way.
	tellAtEnd = 2 * time.Second
)

// leave begins no further notice, since another execution is to give them.
func (r *run) leave(ctx workflow.Context) {
	if r.leaving = true; r.telling {
		_, _ = workflow.AwaitWithTimeout(ctx, tellInHurry, func() bool { return !r.telling })
	}
}

// tellRest gives the notices that no other execution would give, and gives them up after a while: what they
// tell stands in the log.
func (r *run) tellRest(ctx workflow.Context) {
	if r.untold() == nil {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if told, _ := workflow.AwaitWithTimeout(ctx, tellAtEnd, func() bool { return r.untold() == nil }); !told {
		workflow.GetLogger(ctx).Warn("the last notices about a run's questions were not given", "run", r.untold().RunID)
	}
}
