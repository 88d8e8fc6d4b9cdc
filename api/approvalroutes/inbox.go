package approvalroutes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/stream"
)

// approvalPage is a page of the open interrupts in the inbox.
type approvalPage struct {
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"nextCursor,omitempty"`
	// EventsCursor is the cursor with which approvalEvents continues after this page without a gap.
	EventsCursor string `json:"eventsCursor"`
}

// listApprovals serves GET /v1/approvals: the open approvals and questions of the caller's tenant,
// oldest first, from the index in memory; with status=decided those of the last 30 days. The caller
// gets those of threads that it may read, and those of which it is an approver.
func (r *Routes) listApprovals(c *gin.Context) error {
	status, err := readStatus(c)
	if err != nil {
		return err
	}
	if err := r.awaitAudit(c); err != nil {
		return err
	}
	if status == inbox.StatusDecided {
		return r.listDecided(c)
	}
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	filter, err := readFilter(c)
	if err != nil {
		return err
	}
	filter.Reader = r.reader(c.Request.Context())
	if filter.Until, err = latestOpening(c, time.Now()); err != nil {
		return err
	}
	page, err := r.inbox.Index.List(request.Caller(c.Request.Context()).Tenant, filter, c.Query("cursor"), limit)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, approvalPage{Items: page.Items, NextCursor: page.Next, EventsCursor: page.Events.String()})
}

// maxDecided bounds a page of decided interrupts. The content of each is in the audit of its
// thread; maxAuditThreads bounds the threads whose audits are read concurrently.
const (
	maxDecided      = 100
	maxAuditThreads = 8
)

// listDecided serves GET /v1/approvals?status=decided: the decided and expired interrupts of the
// caller's tenant that the caller may read, the last decided first. A page has at most maxDecided
// entries, whatever limit is, and fewer if threads were deleted meanwhile. The audits of threads are
// read only for interrupts that the caller may read.
func (r *Routes) listDecided(c *gin.Context) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	for _, name := range []string{"assignee", "olderThan"} {
		if _, ok := c.GetQuery(name); ok {
			return problem.InvalidParameter(name, name+" needs status=open")
		}
	}
	reader := r.reader(c.Request.Context())
	filter := inbox.Filter{Agent: c.Query("agent"), Tool: c.Query("tool"), Thread: c.Query("thread"), Reader: reader}
	page, next, err := r.inbox.Index.Decided(request.Caller(c.Request.Context()).Tenant, filter, c.Query("cursor"), min(limit, maxDecided))
	if err != nil {
		return err
	}
	items, err := r.readHistories(c.Request.Context(), page)
	if err != nil {
		return err
	}
	// The caller's access may have changed since.
	items = slices.DeleteFunc(items, func(h *inbox.History) bool { return !reader.Reads(&h.Approval) })
	return request.WriteJSON(c, http.StatusOK, struct {
		Items      []*inbox.History `json:"items"`
		NextCursor string           `json:"nextCursor,omitempty"`
	}{items, next})
}

// readHistories reads interrupts from the audits of their threads, and returns them in the order of
// page. It omits those of deleted threads. It fails if one audit cannot be read.
func (r *Routes) readHistories(ctx context.Context, page []inbox.Reference) ([]*inbox.History, error) {
	tenant := request.Caller(ctx).Tenant
	histories := make([]*inbox.History, len(page))
	// One audit contains all interrupts of its thread, so it is read once for all entries of the
	// page.
	threadEntries := map[string][]int{} // the indexes of each thread's entries
	for i, d := range page {
		threadEntries[d.Thread] = append(threadEntries[d.Thread], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxAuditThreads)
	for thread, indexes := range threadEntries {
		group.Go(func() error {
			audit, err := inbox.ReadHistory(ctx, r.finder.Log, stream.Thread{Tenant: tenant, ID: thread})
			for _, i := range indexes {
				histories[i] = inbox.ByID(audit, page[i].ID)
			}
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(histories, func(h *inbox.History) bool { return h == nil }), err
}

// reader returns the caller as a reader of the inbox.
func (r *Routes) reader(ctx context.Context) *inbox.Reader {
	p := request.Caller(ctx)
	return &inbox.Reader{Subject: p.Subject, Roles: p.Roles, MayRead: func(thread string, isApprover bool) bool {
		return r.access.CheckInterrupt(ctx, stream.Thread{Tenant: p.Tenant, ID: thread}, policy.ReadInterrupt, isApprover) == nil
	}}
}

// readFilter reads the filter of the inbox from the query. assignee is me (the caller with all
// roles), a subject, or role:name; an invalid value is a 400.
func readFilter(c *gin.Context) (inbox.Filter, error) {
	filter := inbox.Filter{Agent: c.Query("agent"), Tool: c.Query("tool"), Thread: c.Query("thread")}
	assignee, ok := c.GetQuery("assignee")
	if !ok {
		return filter, nil
	}
	role, isRole := strings.CutPrefix(assignee, "role:")
	switch {
	case assignee == "" || isRole && role == "":
		return filter, problem.InvalidParameter("assignee", "assignee must be me, a subject or role:name")
	case assignee == "me":
		p := request.Caller(c.Request.Context())
		filter.Assignee = &inbox.Assignee{Subject: p.Subject, Roles: p.Roles, Caller: true}
	case isRole:
		filter.Assignee = &inbox.Assignee{Roles: []string{role}}
	default:
		filter.Assignee = &inbox.Assignee{Subject: assignee}
	}
	return filter, nil
}

// latestOpening reads the parameter latestOpening, and returns the latest time at which an
// interrupt may have opened; zero = any time.
func latestOpening(c *gin.Context, now time.Time) (time.Time, error) {
	text, ok := c.GetQuery("olderThan")
	if !ok {
		return time.Time{}, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return time.Time{}, problem.InvalidParameter("olderThan", "olderThan must be a duration, such as 4h or 30m")
	}
	return now.Add(-age), nil
}

// feedTimeout bounds one wait for a message of the feed. It has no effect on the client, which gets
// heartbeats meanwhile.
const feedTimeout = time.Minute

// listTimeout bounds how long an event waits for the lists of the process.
const listTimeout = time.Second

// maxFeeds bounds the followers of the inbox on a node, since each has a JetStream consumer of its
// own. They count as streams of the process as well.
const maxFeeds = 1000

// approvalEvents serves GET /v1/approvals/events: the changes of interrupts as server-sent events,
// after a cursor or from now on. The stream ends when the client disconnects, the process drains,
// the credentials expire, or the feed breaks; the client reconnects with its last event ID.
//
// Errors before the stream: 400 invalid_cursor, 410 gone for a cursor that is older than
// inbox.Resumable, 503 node_full.
func (r *Routes) approvalEvents(c *gin.Context) error {
	after, err := r.feedCursor(c)
	if err != nil {
		return err
	}
	filter, err := readFilter(c)
	if err != nil {
		return err
	}
	filter.Reader = r.reader(c.Request.Context())
	if r.finder.Closed.Err() != nil {
		return streams.ErrDrain
	}
	caller := request.Caller(c.Request.Context())
	if err := r.feeds.Enter(caller); err != nil {
		return problem.FullIf(err, "open streams")
	}
	defer r.feeds.Leave(caller)
	feed, err := r.inbox.Store.Follow(c.Request.Context(), caller.Tenant, after)
	if err != nil {
		return err
	}
	defer feed.Close()
	w, err := sse.NewWriter(c.Writer)
	if err != nil {
		return nil //nolint:nilerr // the client is gone
	}
	r.sendFeed(c.Request.Context(), feed, &filter, w)
	return nil
}

// feedCursor reads the cursor of a request, from Last-Event-ID or else the parameter after; nil =
// none.
func (r *Routes) feedCursor(c *gin.Context) (*inbox.Cursor, error) {
	text := c.GetHeader("Last-Event-ID")
	if text == "" {
		text = c.Query("after")
	}
	if text == "" {
		return nil, nil
	}
	cursor, err := r.inbox.Store.ParseCursor(text)
	return &cursor, err
}

// awaitList waits until the lists of this process show what an event tells, at most listTimeout: if
// they do not follow the log, the event is sent before them.
func (r *Routes) awaitList(ctx context.Context, m *inbox.Message) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	_ = r.inbox.Index.AwaitEvent(ctx, request.Caller(ctx).Tenant, m)
}

// sendFeed sends the events that the filter picks until the client is gone, the process drains, or
// the feed breaks. It counts the stream in the metrics, with the reason of its end.
func (r *Routes) sendFeed(ctx context.Context, feed *inbox.Feed, filter *inbox.Filter, w *sse.Writer) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.finder.Closed, func() { cancel(streams.ErrDrain) })()
	defer w.KeepAlive(r.streams.Heartbeat, cancel)()
	end := telemetry.Viewer(ctx)
	var err error
	for err == nil {
		var m *inbox.Message
		m, err = feed.Next(ctx, feedTimeout)
		switch {
		// nil: no event within feedTimeout
		case err != nil, m == nil:
		case filter.Matches(&m.Event):
			r.awaitList(ctx, m)
			if err = w.Event(m.Cursor.String(), m.JSON); err == nil {
				err = w.Flush()
			}
		}
	}
	// A feed does not survive the death of the NATS node that has its consumer.
	if errors.Is(err, inbox.ErrBroken) {
		err = errors.Join(err, stream.ErrInterrupted) // no defect: the client reconnects
	}
	end(r.streams.EndReason(ctx, err))
}
