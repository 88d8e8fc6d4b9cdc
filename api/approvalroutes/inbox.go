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
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/stream"
)

// approvals is a page of the open interrupts in the inbox.
type approvals struct {
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"nextCursor,omitempty"`
	// EventsCursor is the cursor with which approvalEvents continues after this page without a gap.
	EventsCursor string `json:"eventsCursor"`
}

// listApprovals serves GET /v1/approvals: the open approvals and questions of the caller's tenant,
// oldest first, from the index in memory; with status=decided those of the last 30 days. Any caller
// of the tenant sees all of them; assignee filters and protects nothing.
func (s *Routes) listApprovals(c *gin.Context) {
	status, err := approvalStatus(c)
	if err == nil {
		err = s.awaitAudit(c)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if status == inbox.StatusDecided {
		s.listDecided(c)
		return
	}
	limit, err := request.Limit(c)
	var q inbox.Filter
	if err == nil {
		q, err = filterOf(c)
	}
	if err == nil {
		q.Until, err = olderThan(c, time.Now())
	}
	var p inbox.Page
	if err == nil {
		p, err = s.inbox.Index.List(request.Caller(c.Request.Context()).Tenant, q, c.Query("cursor"), limit)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, approvals{Items: p.Items, NextCursor: p.Next, EventsCursor: p.Events.String()})
}

// maxDecided bounds a page of decided interrupts. The content of each is in the audit of its
// thread; auditThreads bounds the threads whose audits are read concurrently.
const (
	maxDecided   = 100
	auditThreads = 8
)

// listDecided serves GET /v1/approvals?status=decided: the decided and expired interrupts of the
// caller's tenant, the last decided first. A page has at most maxDecided entries, whatever limit
// is, and fewer if threads were deleted.
func (s *Routes) listDecided(c *gin.Context) {
	limit, err := request.Limit(c)
	for _, name := range []string{"assignee", "olderThan"} {
		if _, ok := c.GetQuery(name); ok && err == nil {
			err = problem.BadRequest("invalid_input", "", name+" needs status=open")
		}
	}
	var page []inbox.Reference
	var next string
	if err == nil {
		q := inbox.Filter{Agent: c.Query("agent"), Tool: c.Query("tool"), Thread: c.Query("thread")}
		page, next, err = s.inbox.Index.Decided(request.Caller(c.Request.Context()).Tenant, q, c.Query("cursor"), min(limit, maxDecided))
	}
	var items []*inbox.History
	if err == nil {
		items, err = s.pasts(c.Request.Context(), page)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, struct {
		Items      []*inbox.History `json:"items"`
		NextCursor string           `json:"nextCursor,omitempty"`
	}{items, next})
}

// pasts reads interrupts from the audits of their threads, and returns them in the order of page.
// It omits those of deleted threads. It fails if one audit cannot be read.
func (s *Routes) pasts(ctx context.Context, page []inbox.Reference) ([]*inbox.History, error) {
	tenant, found := request.Caller(ctx).Tenant, make([]*inbox.History, len(page))
	// One audit contains all interrupts of its thread, so it is read once for all entries of the
	// page.
	places := map[string][]int{}
	for i, d := range page {
		places[d.Thread] = append(places[d.Thread], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(auditThreads)
	for thread, of := range places {
		group.Go(func() error {
			history, err := inbox.ReadHistory(ctx, s.find.Log, stream.Thread{Tenant: tenant, ID: thread})
			for _, i := range of {
				found[i] = inbox.ByID(history, page[i].ID)
			}
			return err
		})
	}
	err := group.Wait()
	return slices.DeleteFunc(found, func(p *inbox.History) bool { return p == nil }), err
}

// filterOf reads the filter of the inbox from the query. assignee is me (the caller with all
// roles), a subject, or role:name; an invalid value is a 400.
func filterOf(c *gin.Context) (inbox.Filter, error) {
	q := inbox.Filter{Agent: c.Query("agent"), Tool: c.Query("tool"), Thread: c.Query("thread")}
	assignee, ok := c.GetQuery("assignee")
	if !ok {
		return q, nil
	}
	role, isRole := strings.CutPrefix(assignee, "role:")
	switch {
	case assignee == "" || isRole && role == "":
		return q, problem.BadRequest("invalid_input", "", "assignee must be me, a subject or role:name")
	case assignee == "me":
		p := request.Caller(c.Request.Context())
		q.Assignee = &inbox.Assignee{Subject: p.Subject, Roles: p.Roles, Caller: true}
	case isRole:
		q.Assignee = &inbox.Assignee{Roles: []string{role}}
	default:
		q.Assignee = &inbox.Assignee{Subject: assignee}
	}
	return q, nil
}

// olderThan reads the parameter olderThan, and returns the latest time at which an interrupt may
// have opened; zero = any time.
func olderThan(c *gin.Context, now time.Time) (time.Time, error) {
	text, ok := c.GetQuery("olderThan")
	if !ok {
		return time.Time{}, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return time.Time{}, problem.BadRequest("invalid_input", "", "olderThan must be a duration, such as 4h or 30m")
	}
	return now.Add(-age), nil
}

// feedWait bounds one wait for a message of the feed. It has no effect on the client, which gets
// heartbeats meanwhile.
const feedWait = time.Minute

// feeds bounds the followers of the inbox on a node, since each has a JetStream consumer of its
// own. They count as streams of the node as well.
const feeds = 1000

// approvalEvents serves GET /v1/approvals/events: the changes of interrupts as server-sent events,
// after a cursor or from now on. The stream ends when the client disconnects, the node drains, the
// credentials expire, or the feed breaks; the client reconnects with its last event ID.
//
// Errors before the stream: 400 invalid_cursor, 410 gone for a cursor that is older than
// inbox.Resumable, 503 node_full.
func (s *Routes) approvalEvents(c *gin.Context) {
	after, err := s.feedCursor(c)
	var q inbox.Filter
	if err == nil {
		q, err = filterOf(c)
	}
	if err == nil && s.find.Closed.Err() != nil {
		err = streams.ErrDrain
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if !s.feeds.TryAcquire(1) {
		s.Refuse(c, problem.Full())
		return
	}
	defer s.feeds.Release(1)
	feed, err := s.inbox.Store.Follow(c.Request.Context(), request.Caller(c.Request.Context()).Tenant, after)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	defer feed.Close()
	to, err := sse.NewWriter(c.Writer)
	if err != nil {
		return // the client is gone
	}
	s.pumpFeed(c.Request.Context(), feed, &q, to)
}

// feedCursor reads the cursor of a request, from Last-Event-ID or else the parameter after; nil =
// none.
func (s *Routes) feedCursor(c *gin.Context) (*inbox.Cursor, error) {
	text := c.GetHeader("Last-Event-ID")
	if text == "" {
		text = c.Query("after")
	}
	if text == "" {
		return nil, nil
	}
	cursor, err := s.inbox.Store.ParseCursor(text)
	return &cursor, err
}

// pumpFeed sends the events that the filter picks until the client is gone, the node drains, or the
// feed breaks. It counts the stream in the metrics, with the reason of its end.
func (s *Routes) pumpFeed(ctx context.Context, feed *inbox.Feed, q *inbox.Filter, to *sse.Writer) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.find.Closed, func() { cancel(streams.ErrDrain) })()
	defer to.KeepAlive(s.streams.Heartbeat, cancel)()
	end := telemetry.Viewer(ctx)
	var err error
	for err == nil {
		var m *inbox.Message
		m, err = feed.Next(ctx, feedWait)
		switch {
		// nil: no event within feedWait
		case err != nil, m == nil:
		case q.Matches(&m.Event):
			if err = to.Event(m.Cursor.String(), m.JSON); err == nil {
				err = to.Flush()
			}
		}
	}
	// A feed does not survive the death of the NATS node that has its consumer.
	if errors.Is(err, inbox.ErrBroken) {
		err = errors.Join(err, stream.ErrInterrupted) // no defect: the client reconnects
	}
	end(s.streams.Ending(ctx, err))
}
