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

// listThreads serves GET /v1/threads: the threads of the caller's tenant, the last updated first,
// from the index in memory. The index may lag behind the log for a moment.
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

// threadFilter reads the filter of a list from the query. Invalid values are 400.
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

// timeIn reads an RFC 3339 time from a parameter; zero = the parameter is missing.
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

// threadSummary is the answer of GET /v1/threads/{thread}.
type threadSummary struct {
	ThreadID string `json:"threadId"`
	// Agent is the agent that has the thread, after handoffs.
	Agent  string        `json:"agent,omitempty"`
	Status stream.Status `json:"status"`
	// RunID is the last run. It is active while the status is running or paused.
	RunID string `json:"runId,omitempty"`
	// Waiting has the open interrupts and client tool calls, also those of a held run; nil = none.
	Waiting *openInterrupts `json:"waiting,omitempty"`
	// Runs and Messages are counts. Usage is the sum over all runs, with one entry for each model;
	// Estimated is the part of it that is estimated.
	Runs       int                      `json:"runs"`
	Messages   int                      `json:"messages"`
	Usage      []agui.TokenUsage        `json:"usage,omitempty"`
	Estimated  *snapshot.EstimatedUsage `json:"estimated,omitempty"`
	UpdatedAt  time.Time                `json:"updatedAt,omitzero"`
	ForkedFrom *origin                  `json:"forkedFrom,omitempty"`
}

// openInterrupts are the interrupts that a thread waits for: approvals and questions, and the
// IDs of client tool calls without a result.
type openInterrupts struct {
	Interrupts  []agui.Interrupt `json:"interrupts,omitempty"`
	ToolCallIDs []string         `json:"toolCallIds,omitempty"`
}

// origin is the run at whose end a thread was forked.
type origin struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
}

// decidedInterrupts returns for each interrupt of a thread, by its ID, whether it is decided or
// expired according to the audit. The snapshot has a decision only after the thread continues with
// it, so a summary would list decided interrupts as open.
func (s *Routes) decidedInterrupts(ctx context.Context, thread stream.Thread) (map[string]bool, error) {
	past, err := inbox.ReadHistory(ctx, s.find.Log, thread)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, p := range past {
		ids[p.ID] = p.Status != inbox.StatusOpen
	}
	return ids, nil
}

// openToolCalls returns those of the client tool calls that have no result yet. The thread's
// workflow knows results that arrived before the thread continued; the log does not. If the
// workflow does not answer within lookPatience, all calls are returned.
func (s *Routes) openToolCalls(ctx context.Context, thread stream.Thread, calls []string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	_, err := s.commands.Dispatch.Offer(ctx, thread, runs.SubmitRequest{}, "") // an offer without a run: the refusal contains the calls that wait
	var active runs.ActiveRun
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !slices.Contains([]string{runs.ErrorInterrupted, runs.ErrorMissingResults, runs.ErrorBusy}, refused.Type()) || refused.Details(&active) != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(id string) bool { return !slices.Contains(active.Waiting, id) })
}

// summaryOf returns the summary of a snapshot. answered has the interrupts that are decided
// already, and toolCalls the client tool calls that wait.
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

// lookPatience bounds how long a summary waits for Temporal or the workflow. A summary without them
// is less exact, but not wrong.
const lookPatience = 2 * time.Second

// showThread serves GET /v1/threads/{thread}: the summary of a thread. If the thread seems to run
// although its workflow has died, showThread ends the run first, so it writes to the log in this
// case. An unknown thread is a 404.
func (s *Routes) showThread(c *gin.Context) {
	thread, snap, err := s.latestThread(c)
	if err == nil && snap.Status() == stream.StatusRunning {
		// The watcher asks Temporal only if the run is due, so this rarely takes time.
		ctx, end := context.WithTimeout(c.Request.Context(), lookPatience)
		_ = s.watcher.LookAfter(ctx, stream.Run{Thread: thread, ID: snap.RunID})
		end()
		snap, err = s.find.Snapshots.Latest(c.Request.Context(), thread, 0)
	}
	var answered map[string]bool
	if err == nil && len(snap.Interrupts) > 0 {
		answered, err = s.decidedInterrupts(c.Request.Context(), thread)
	}
	// The snapshot does not know of pauses; the index of threads does.
	paused := false
	if err == nil && snap.Status() == stream.StatusRunning {
		paused, err = s.find.Log.Paused(c.Request.Context(), stream.Run{Thread: thread, ID: snap.RunID})
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	toolCalls := snap.ClientCalls
	if len(toolCalls) > 0 {
		toolCalls = s.openToolCalls(c.Request.Context(), thread, toolCalls)
	}
	sum := summaryOf(thread, snap, answered, toolCalls)
	if paused {
		sum.Status = stream.StatusPaused
	}
	c.JSON(http.StatusOK, sum)
}

// latestThread returns the thread in the path and its latest snapshot. If the query has waitFor, it
// first waits until the log shows the effect of the acknowledged request. A thread without a record
// is a 404.
func (s *Routes) latestThread(c *gin.Context) (stream.Thread, *snapshot.Snapshot, error) {
	thread, err := request.ThreadOf(c)
	if err != nil {
		return thread, nil, err
	}
	if err := s.find.AwaitEffect(c.Request.Context(), thread, c.Query("waitFor")); err != nil {
		return thread, nil, err
	}
	snap, err := s.find.Snapshots.Latest(c.Request.Context(), thread, 0)
	if err == nil && snap.Seq == 0 {
		err = problem.NoThread(thread)
	}
	return thread, snap, err
}

// showState serves GET /v1/threads/{thread}/state: the state after all finished steps. Changes of a
// step in progress are missing.
func (s *Routes) showState(c *gin.Context) {
	_, snap, err := s.latestThread(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"state": snap.State})
}

// messagesPage is a page of a conversation. All pages show the conversation at the record of the
// first page.
type messagesPage struct {
	Items      []agui.Message `json:"items"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// showMessages serves GET /v1/threads/{thread}/messages: the conversation from its beginning, in
// pages. The cursor has the record of the first page and an index, so later pages do not shift when
// the conversation changes. If the record was purged, a later page is a 410 gone.
func (s *Routes) showMessages(c *gin.Context) {
	limit, err := request.Limit(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	snap, from, err := s.conversationAt(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	p := messagesPage{Items: []agui.Message{}}
	bytes := 0
	for i, e := range snap.Entries[min(from, len(snap.Entries)):] {
		if len(p.Items) == limit || bytes >= request.PageBytes {
			p.NextCursor = fmt.Sprintf("%012x-%x", snap.Seq, from+i)
			break
		}
		if e.Hidden() { // reasoning without text, which clients never see
			continue
		}
		bytes += e.Weight()
		p.Items = append(p.Items, e.Message)
	}
	request.WritePage(c, p.Items, p.NextCursor, agui.Message.MarshalJSON)
}

// conversationAt returns the snapshot that a page shows, and the index of its first entry: the
// latest snapshot without a cursor, else the one at the record in the cursor.
func (s *Routes) conversationAt(c *gin.Context) (*snapshot.Snapshot, int, error) {
	cursor := c.Query("cursor")
	if cursor == "" {
		_, snap, err := s.latestThread(c)
		return snap, 0, err
	}
	thread, err := request.ThreadOf(c)
	if err != nil {
		return nil, 0, err
	}
	var seq uint64
	var from int
	// Sscanf ignores text after the numbers. Only the text that showMessages writes is a cursor.
	if n, err := fmt.Sscanf(cursor, "%012x-%x", &seq, &from); n != 2 || err != nil || from < 0 || fmt.Sprintf("%012x-%x", seq, from) != cursor {
		return nil, 0, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	then, err := s.find.Snapshots.AtCursor(c.Request.Context(), thread, seq)
	return then, from, err
}

// runItem is a run in the list of a thread's runs. A run that is active has no EndedAt and no
// Outcome.
type runItem struct {
	RunID string `json:"runId"`
	// Segment is the number of the run among those with the same ID, from 1.
	Segment  int    `json:"segment"`
	Agent    string `json:"agent"`
	Revision string `json:"revision,omitempty"`
	// Continues is the run that this one continues without an input of its own; "" = none. Outcome
	// is success, interrupt, cancelled or error; Code is that of the error.
	Continues string     `json:"continues,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Outcome   string     `json:"outcome,omitempty"`
	Code      string     `json:"code,omitempty"`
	// Cancel is the request that cancelled the run; nil = none.
	Cancel *cancelItem `json:"cancel,omitempty"`
	// Usage is the usage in the run's last event, and Estimated the part of it that is estimated.
	Usage     []agui.TokenUsage        `json:"usage,omitempty"`
	Estimated *snapshot.EstimatedUsage `json:"estimated,omitempty"`
}

// cancelItem is a request to cancel a run. By is the subject of the caller; "" = an anonymous
// caller or the server.
type cancelItem struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// runItemOf returns the item of a run.
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

// listRuns serves GET /v1/threads/{thread}/runs: the runs of a thread, the newest first. The cursor
// is the number of runs that are older than the page, so it stays valid when runs are added.
func (s *Routes) listRuns(c *gin.Context) {
	limit, err := request.Limit(c)
	var older int
	if err == nil {
		older, err = request.ParseCount(c.Query("cursor"))
	}
	var snap *snapshot.Snapshot
	if err == nil {
		_, snap, err = s.latestThread(c)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	page := struct {
		Items      []runItem `json:"items"`
		NextCursor string    `json:"nextCursor,omitempty"`
	}{Items: []runItem{}}
	runs := snap.Runs
	// 0 is the first page, which begins with the newest run.
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
