package threadroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// listThreads lists the threads of the caller's tenant, the last changed first.
func (s *Routes) listThreads(c *gin.Context) {
	limit, err := request.Limit(c)
	var f threads.Filter
	if err == nil {
		f, err = threadFilter(c)
	}
	var p threads.Page
	if err == nil {
		p, err = s.index.List(request.Caller(c.Request.Context()).Tenant, f, c.Query("cursor"), limit)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, p)
}

func threadFilter(c *gin.Context) (threads.Filter, error) {
	f := threads.Filter{Agent: c.Query("agent"), Status: stream.Status(c.Query("status"))}
	switch f.Status {
	case "", stream.StatusRunning, stream.StatusPaused, stream.StatusWaiting, stream.StatusIdle:
	default:
		return f, problem.BadRequest("invalid_input", "", "status must be running, paused, waiting or idle")
	}
	var err error
	if f.After, err = timeIn(c, "updatedAfter"); err == nil {
		f.Before, err = timeIn(c, "updatedBefore")
	}
	return f, err
}

// timeIn reads a time from a parameter; zero = it is missing.
func timeIn(c *gin.Context, name string) (time.Time, error) {
	text, ok := c.GetQuery(name)
	if !ok {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, problem.BadRequest("invalid_input", "", name+" must be a time, such as 2026-11-21T09:30:00Z")
	}
	return at, nil
}

// threadSummary is the answer of GET thread.
type threadSummary struct {
	ThreadID string        `json:"threadId"`
	Agent    string        `json:"agent,omitempty"`
	Status   stream.Status `json:"status"`
	// RunID is the last run. It is active while the status is running or paused.
	RunID string `json:"runId,omitempty"`
	// Waiting has the open interrupts and client tool calls, also those of a held run.
	Waiting    *openInterrupts          `json:"waiting,omitempty"`
	Runs       int                      `json:"runs"`
	Messages   int                      `json:"messages"`
	Usage      []agui.TokenUsage        `json:"usage,omitempty"`
	Estimated  *snapshot.EstimatedUsage `json:"estimated,omitempty"`
	UpdatedAt  time.Time                `json:"updatedAt,omitzero"`
	ForkedFrom *origin                  `json:"forkedFrom,omitempty"`
}

// openInterrupts are what a thread waits for.
type openInterrupts struct {
	Interrupts  []agui.Interrupt `json:"interrupts,omitempty"`
	ToolCallIDs []string         `json:"toolCallIds,omitempty"`
}

// origin is the run that a thread is a fork of.
type origin struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
}

// decidedInterrupts returns the interrupts of a thread that the audit has as decided. The log has a
// decision only after the thread continues with it.
func (s *Routes) decidedInterrupts(ctx context.Context, thread stream.Thread) (map[string]bool, error) {
	past, err := inbox.History(ctx, s.find.Log, thread)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, p := range past {
		ids[p.ID] = p.Status != inbox.StatusOpen
	}
	return ids, nil
}

// openToolCalls returns the client tool calls without a result. The thread's workflow knows results
// that came before the thread continues; the log does not. If the workflow does not answer, all
// calls are listed.
func (s *Routes) openToolCalls(ctx context.Context, thread stream.Thread, calls []string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	_, err := s.commands.Dispatch.Offer(ctx, thread, runs.Submit{}, "") // an offer without a run asks what the thread waits for
	var active runs.Active
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !slices.Contains([]string{runs.ErrorInterrupted, runs.ErrorMissingResults, runs.ErrorBusy}, refused.Type()) || refused.Details(&active) != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(id string) bool { return !slices.Contains(active.Waiting, id) })
}

func summaryOf(thread stream.Thread, r *snapshot.Snapshot, answered map[string]bool, toolCalls []string) threadSummary {
	sum := threadSummary{
		ThreadID: thread.ID, Agent: r.Agent(), Status: r.Status(), RunID: stream.ShownRunID(r.RunID),
		Runs: len(r.Runs), Messages: len(r.Messages()), Usage: r.Usage, Estimated: r.Estimated, UpdatedAt: r.Active.UTC(),
	}
	open := slices.DeleteFunc(slices.Clone(r.Interrupts), func(q agui.Interrupt) bool { return answered[q.ID] })
	if len(open)+len(toolCalls) > 0 {
		sum.Waiting = &openInterrupts{Interrupts: open, ToolCallIDs: toolCalls}
	}
	if r.Origin != nil {
		sum.ForkedFrom = &origin{r.Origin.Thread, r.Origin.Run}
	}
	return sum
}

// lookPatience bounds how long a summary waits for the workflow.
const lookPatience = 2 * time.Second

// showThread answers with the summary of a thread. A run whose workflow has died is ended first.
func (s *Routes) showThread(c *gin.Context) {
	thread, now, err := s.threadAsItIs(c)
	if err == nil && now.Status() == stream.StatusRunning {
		ctx, end := context.WithTimeout(c.Request.Context(), lookPatience)
		_ = s.watcher.LookAfter(ctx, stream.Run{Thread: thread, ID: now.RunID})
		end()
		now, err = s.find.Snapshots.Latest(c.Request.Context(), thread, 0)
	}
	var answered map[string]bool
	if err == nil && len(now.Interrupts) > 0 {
		answered, err = s.decidedInterrupts(c.Request.Context(), thread)
	}
	paused := false
	if err == nil && now.Status() == stream.StatusRunning {
		paused, err = s.find.Log.Paused(c.Request.Context(), stream.Run{Thread: thread, ID: now.RunID})
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	toolCalls := now.ClientCalls
	if len(toolCalls) > 0 {
		toolCalls = s.openToolCalls(c.Request.Context(), thread, toolCalls)
	}
	sum := summaryOf(thread, now, answered, toolCalls)
	if paused {
		sum.Status = stream.StatusPaused
	}
	c.JSON(http.StatusOK, sum)
}

// threadAsItIs returns the snapshot of the thread in the path, which shows the effect of what the
// parameter waitFor is the cursor of.
func (s *Routes) threadAsItIs(c *gin.Context) (stream.Thread, *snapshot.Snapshot, error) {
	thread, err := request.ThreadOf(c)
	if err != nil {
		return thread, nil, err
	}
	if err := s.find.AwaitEffect(c.Request.Context(), thread, c.Query("waitFor")); err != nil {
		return thread, nil, err
	}
	now, err := s.find.Snapshots.Latest(c.Request.Context(), thread, 0)
	if err == nil && now.Seq == 0 {
		err = problem.NoThread(thread)
	}
	return thread, now, err
}

// showState answers with the state after all finished steps.
func (s *Routes) showState(c *gin.Context) {
	_, now, err := s.threadAsItIs(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"state": now.State})
}

// messagesPage is a page of a conversation, as of its first page.
type messagesPage struct {
	Items      []agui.Message `json:"items"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// showMessages answers with the conversation, from its beginning.
func (s *Routes) showMessages(c *gin.Context) {
	limit, err := request.Limit(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	now, from, err := s.conversationAt(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	p := messagesPage{Items: []agui.Message{}}
	bytes := 0
	for i, e := range now.Entries[min(from, len(now.Entries)):] {
		if len(p.Items) == limit || bytes >= request.PageBytes {
			p.NextCursor = fmt.Sprintf("%012x-%x", now.Seq, from+i)
			break
		}
		if e.Hidden() {
			continue
		}
		bytes += e.Weight()
		p.Items = append(p.Items, e.Message)
	}
	c.JSON(http.StatusOK, p)
}

// conversationAt returns the thread of a page, and where the page begins: at the thread's last
// record or, with a cursor, at the record of the first page.
func (s *Routes) conversationAt(c *gin.Context) (*snapshot.Snapshot, int, error) {
	cursor := c.Query("cursor")
	if cursor == "" {
		_, now, err := s.threadAsItIs(c)
		return now, 0, err
	}
	thread, err := request.ThreadOf(c)
	if err != nil {
		return nil, 0, err
	}
	var seq uint64
	var from int
	if n, err := fmt.Sscanf(cursor, "%012x-%x", &seq, &from); n != 2 || err != nil || from < 0 || fmt.Sprintf("%012x-%x", seq, from) != cursor {
		return nil, 0, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	then, err := s.find.Snapshots.AtCursor(c.Request.Context(), thread, seq)
	return then, from, err
}

// runItem is a run in a list.
type runItem struct {
	RunID string `json:"runId"`
	// Segment counts the segments of a run ID, from 1.
	Segment   int        `json:"segment"`
	Agent     string     `json:"agent"`
	Revision  string     `json:"revision,omitempty"`
	Continues string     `json:"continues,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Outcome   string     `json:"outcome,omitempty"`
	Code      string     `json:"code,omitempty"`
	// Cancel is the request that cancelled the run.
	Cancel *cancelItem `json:"cancel,omitempty"`
	// Usage and Estimated are those of the run's last event.
	Usage     []agui.TokenUsage        `json:"usage,omitempty"`
	Estimated *snapshot.EstimatedUsage `json:"estimated,omitempty"`
}

// cancelItem is a request to cancel a run.
type cancelItem struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

func runItemOf(n snapshot.RunNote) runItem {
	item := runItem{
		RunID: stream.ShownRunID(n.ID), Segment: n.Segment(), Agent: n.Agent, Revision: n.Revision, Continues: stream.ShownRunID(n.Continues),
		StartedAt: n.Began.UTC(), Outcome: n.Outcome, Code: n.Code, Usage: n.Usage, Estimated: n.Estimated,
	}
	if !n.Ended.IsZero() {
		at := n.Ended.UTC()
		item.EndedAt = &at
	}
	if c := n.Cancel; c != nil {
		item.Cancel = &cancelItem{Reason: c.Reason, At: c.At.UTC()}
		if c.By != nil {
			item.Cancel.By = c.By.Subject
		}
	}
	return item
}

// listRuns lists the runs of a thread, the newest first. A cursor is the number of runs that are
// older than the page.
func (s *Routes) listRuns(c *gin.Context) {
	limit, err := request.Limit(c)
	var older int
	if err == nil {
		older, err = request.ParseCount(c.Query("cursor"))
	}
	var now *snapshot.Snapshot
	if err == nil {
		_, now, err = s.threadAsItIs(c)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	page := struct {
		Items      []runItem `json:"items"`
		NextCursor string    `json:"nextCursor,omitempty"`
	}{Items: []runItem{}}
	runs := now.Runs
	if older > 0 {
		runs = runs[:min(older, len(runs))]
	}
	rest := max(0, len(runs)-limit)
	for _, n := range slices.Backward(runs[rest:]) {
		page.Items = append(page.Items, runItemOf(n))
	}
	if rest > 0 {
		page.NextCursor = request.CountCursor(rest)
	}
	c.JSON(http.StatusOK, page)
}
