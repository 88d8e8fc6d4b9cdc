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
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/stuck"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// listThreads serves GET /v1/threads: the threads that the caller may read, the last updated first,
// from the index in memory. The index may lag behind the log for a moment.
func (r *Routes) listThreads(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	filter, err := readFilter(c)
	if err != nil {
		return err
	}
	filter.MayRead = r.access.MayRead(c.Request.Context())
	isStuck, err := readBool(c, "stuck")
	if err != nil {
		return err
	}
	if isStuck {
		return r.listStuck(c, filter, limit)
	}
	page, err := r.index.List(request.Caller(c.Request.Context()).Tenant, filter, c.Query("cursor"), limit)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, page)
}

// threadSummary is the answer of GET /v1/threads/{thread}.
type threadSummary struct {
	ThreadID string `json:"threadId"`
	// Title, Metadata and CreatedAt are as in lists.
	Title    string            `json:"title,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Agent is the agent that has the thread, after handoffs.
	Agent  string        `json:"agent,omitempty"`
	Status stream.Status `json:"status"`
	// RunID is the last run. It is active while the status is running or paused.
	RunID string `json:"runId,omitempty"`
	// Event is the event that started the last run, or the run that it continues; nil = none did.
	Event *stream.TriggerEvent `json:"event,omitempty"`
	// Retrying tells why the active run makes no progress; nil = no activity is retried.
	Retrying *threads.Retrying `json:"retrying,omitempty"`
	// Stuck tells why no worker gets the active run, or the input that was sent last, ahead; nil = it
	// makes progress, or waits for people.
	Stuck *stuck.Stuck `json:"stuck,omitempty"`
	// Waiting has the open interrupts and client tool calls, also those of a held run; nil = none.
	Waiting *openInterrupts `json:"waiting,omitempty"`
	// Runs and Messages are counts. Usage is the sum over all runs, with one entry for each model;
	// Estimated is the part of it that is estimated.
	Runs       int                      `json:"runs"`
	Messages   int                      `json:"messages"`
	Usage      []agui.TokenUsage        `json:"usage,omitempty"`
	Estimated  *snapshot.EstimatedUsage `json:"estimated,omitempty"`
	Cost       *threads.Cost            `json:"cost,omitempty"`
	CreatedAt  time.Time                `json:"createdAt,omitzero"`
	UpdatedAt  time.Time                `json:"updatedAt,omitzero"`
	ForkedFrom *origin                  `json:"forkedFrom,omitempty"`
}

// openInterrupts are the interrupts that a thread waits for: approvals and questions, and the
// IDs of client tool calls without a result.
type openInterrupts struct {
	Interrupts  []agui.Interrupt `json:"interrupts,omitempty"`
	ToolCallIDs []string         `json:"toolCallIds,omitempty"`
}

// origin is the run at whose end, or after a step of it, a thread was forked.
type origin struct {
	ThreadID string `json:"threadId"`
	RunID    string `json:"runId"`
	// At is the cursor of the step; "" = the end of the run.
	At string `json:"at,omitempty"`
}

// decidedInterrupts returns for each interrupt of a thread, by its ID, whether it is decided or
// expired according to the audit. The snapshot has a decision only after the thread continues with
// it, so a summary would list decided interrupts as open.
func (r *Routes) decidedInterrupts(ctx context.Context, thread stream.Thread) (map[string]bool, error) {
	histories, err := inbox.ReadHistory(ctx, r.finder.Log, thread)
	if err != nil {
		return nil, err
	}
	decided := map[string]bool{}
	for _, p := range histories {
		decided[p.ID] = p.Status != inbox.StatusOpen
	}
	return decided, nil
}

// openToolCalls returns those of the client tool calls that have no result yet. The thread's
// workflow knows results that arrived before the thread continued; the log does not. If the
// workflow does not answer within statusTimeout, all calls are returned.
func (r *Routes) openToolCalls(ctx context.Context, thread stream.Thread, calls []string) []string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	_, err := r.commands.Dispatch.Offer(ctx, thread, runs.SubmitRequest{}, "") // an offer without a run: the refusal contains the calls that wait
	var active runs.ActiveRun
	refused, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || !slices.Contains([]string{runs.ErrorInterrupted, runs.ErrorMissingResults, runs.ErrorBusy}, refused.Type()) || refused.Details(&active) != nil {
		return calls
	}
	return slices.DeleteFunc(slices.Clone(calls), func(id string) bool { return !slices.Contains(active.Waiting, id) })
}

// summaryOf returns the summary of a snapshot. decided has the interrupts that are decided
// already, and toolCalls the client tool calls that wait.
func summaryOf(thread stream.Thread, snap *snapshot.Snapshot, decided map[string]bool, toolCalls []string) threadSummary {
	summary := threadSummary{
		ThreadID: thread.ID, Agent: snap.Agent(), Status: snap.Status(), RunID: stream.ShownRunID(snap.RunID), Event: snap.TriggerEvent(),
		Runs: len(snap.Runs), Messages: len(snap.Messages()), Usage: snap.Usage, Estimated: snap.Estimated, UpdatedAt: snap.Active.UTC(),
	}
	open := slices.DeleteFunc(slices.Clone(snap.Interrupts), func(q agui.Interrupt) bool { return decided[q.ID] })
	if len(open)+len(toolCalls) > 0 {
		summary.Waiting = &openInterrupts{Interrupts: open, ToolCallIDs: toolCalls}
	}
	if snap.Origin != nil {
		summary.ForkedFrom = &origin{snap.Origin.Thread, snap.Origin.Run, snap.Origin.At}
	}
	return summary
}

// statusTimeout bounds how long a summary waits for Temporal or the workflow. A summary without
// them is less exact, but not wrong.
const statusTimeout = 2 * time.Second

// showThread serves GET /v1/threads/{thread}: the summary of a thread. If the thread seems to run
// although its workflow has died, showThread ends the run first, so it writes to the log in this
// case. An unknown thread is a 404.
func (r *Routes) showThread(c *gin.Context) error {
	ctx := c.Request.Context()
	thread, snap, err := r.latestThread(c)
	if err != nil {
		return err
	}
	if snap.Status() == stream.StatusRunning {
		// The watcher asks Temporal only if the run is due, so this rarely takes time.
		checkCtx, cancel := context.WithTimeout(ctx, statusTimeout)
		_ = r.watcher.Check(checkCtx, stream.Run{Thread: thread, ID: snap.RunID})
		cancel()
		if snap, err = r.finder.Snapshots.Latest(ctx, thread, 0); err != nil {
			return err
		}
	}
	var decided map[string]bool
	if len(snap.Interrupts) > 0 {
		if decided, err = r.decidedInterrupts(ctx, thread); err != nil {
			return err
		}
	}
	// The snapshot does not know of pauses, titles and metadata; the index of threads does.
	listed, err := r.finder.Log.Entry(ctx, thread)
	if err != nil {
		return err
	}
	toolCalls := snap.ClientCalls
	if len(toolCalls) > 0 {
		toolCalls = r.openToolCalls(ctx, thread, toolCalls)
	}
	summary := summaryOf(thread, snap, decided, toolCalls)
	if listed != nil {
		summary.Title, summary.Metadata, summary.CreatedAt = listed.Title(), listed.Metadata, listed.CreatedAt
		summary.Cost = threads.CostOf(listed.Usage)
		if snap.Status() == stream.StatusRunning {
			summary.Retrying = threads.RetryingOf(listed.Retrying)
		}
		if snap.Status() == stream.StatusRunning && listed.IsPaused(snap.RunID) {
			summary.Status = stream.StatusPaused
		}
	}
	summary.Stuck = r.stuckRun(ctx, thread, summary.Status)
	return request.WriteJSON(c, http.StatusOK, summary)
}

// latestThread returns the thread in the path and its latest snapshot. If the query has waitFor, it
// first waits until the log shows the effect of the acknowledged request. A thread without a record
// is a 404, and one that the caller may not read a 403.
func (r *Routes) latestThread(c *gin.Context) (stream.Thread, *snapshot.Snapshot, error) {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return thread, nil, err
	}
	if err := problem.InParameter("waitFor", r.finder.AwaitEffect(c.Request.Context(), thread, c.Query("waitFor"))); err != nil {
		return thread, nil, err
	}
	snap, err := r.finder.Snapshots.Latest(c.Request.Context(), thread, 0)
	if err == nil && snap.Seq == 0 {
		err = problem.NoThread(thread)
	}
	if err == nil {
		err = r.access.Check(c.Request.Context(), thread, policy.ReadThread)
	}
	return thread, snap, err
}

// showState serves GET /v1/threads/{thread}/state: the state after all finished steps. Changes of a
// step in progress are missing.
func (r *Routes) showState(c *gin.Context) error {
	_, snap, err := r.latestThread(c)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, gin.H{"state": snap.State})
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
func (r *Routes) showMessages(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	snap, from, err := r.conversationAt(c)
	if err != nil {
		return err
	}
	p := messagesPage{Items: []agui.Message{}}
	bytes := 0
	for i, e := range snap.Entries[min(from, len(snap.Entries)):] {
		if len(p.Items) == limit || bytes >= request.PageBytes {
			p.NextCursor = fmt.Sprintf("%012x-%x", snap.Seq, from+i)
			break
		}
		m, ok := e.Shown()
		if !ok {
			continue
		}
		bytes += e.Weight()
		p.Items = append(p.Items, m)
	}
	return request.WritePage(c, p.Items, p.NextCursor, messageBytes, agui.Message.MarshalJSON)
}

// messageBytes returns about how many bytes a message occupies.
func messageBytes(m agui.Message) int { return snapshot.Entry{Message: m}.Weight() }

// conversationAt returns the snapshot that a page shows, and the index of its first entry: the
// latest snapshot without a cursor, else the one at the record in the cursor.
func (r *Routes) conversationAt(c *gin.Context) (*snapshot.Snapshot, int, error) {
	cursor := c.Query("cursor")
	if cursor == "" {
		_, snap, err := r.latestThread(c)
		return snap, 0, err
	}
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return nil, 0, err
	}
	var seq uint64
	var from int
	// Sscanf ignores text after the numbers. Only the text that showMessages writes is a cursor.
	if n, err := fmt.Sscanf(cursor, "%012x-%x", &seq, &from); n != 2 || err != nil || from < 0 || fmt.Sprintf("%012x-%x", seq, from) != cursor {
		return nil, 0, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	snapAtCursor, err := r.finder.Snapshots.AtCursor(c.Request.Context(), thread, seq)
	if err == nil {
		err = r.access.Check(c.Request.Context(), thread, policy.ReadThread)
	}
	return snapAtCursor, from, err
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
	Continues string `json:"continues,omitempty"`
	// Event is the event that started the run; nil = none did.
	Event     *stream.TriggerEvent `json:"event,omitempty"`
	StartedAt time.Time            `json:"startedAt"`
	EndedAt   *time.Time           `json:"endedAt,omitempty"`
	Outcome   string               `json:"outcome,omitempty"`
	Code      string               `json:"code,omitempty"`
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
		Event: n.Event, StartedAt: n.Began.UTC(), Outcome: n.Outcome, Code: n.Code, Usage: n.Usage, Estimated: n.Estimated,
	}
	if !n.Ended.IsZero() {
		endedAt := n.Ended.UTC()
		item.EndedAt = &endedAt
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
func (r *Routes) listRuns(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	runCount, err := request.ParseCount(c.Query("cursor"))
	if err != nil {
		return err
	}
	_, snap, err := r.latestThread(c)
	if err != nil {
		return err
	}
	page := struct {
		Items      []runItem `json:"items"`
		NextCursor string    `json:"nextCursor,omitempty"`
	}{Items: []runItem{}}
	runs := snap.Runs
	// 0 is the first page, which begins with the newest run.
	if runCount > 0 {
		runs = runs[:min(runCount, len(runs))]
	}
	rest := max(0, len(runs)-limit)
	for _, n := range slices.Backward(runs[rest:]) {
		page.Items = append(page.Items, runItemOf(n))
	}
	if rest > 0 {
		page.NextCursor = request.CountCursor(rest)
	}
	return request.WriteJSON(c, http.StatusOK, page)
}
