package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/internal/inbox"
	"github.com/perdure/perdure/internal/sse"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/stream"
)

// approvals is a page of the inbox.
type approvals struct {
	Items      []json.RawMessage `json:"items"`
	NextCursor string            `json:"nextCursor,omitempty"`
	// EventsCursor is where the feed goes on from the page.
	EventsCursor string `json:"eventsCursor"`
}

// listApprovals lists what waits for a person, the oldest first.
func (s *Server) listApprovals(c *gin.Context) {
	limit, err := limitOf(c)
	var q inbox.Filter
	if err == nil {
		q, err = filterOf(c)
	}
	if err == nil {
		q.Until, err = olderThan(c, time.Now())
	}
	var p inbox.Page
	if err == nil {
		p, err = s.Inbox.Index.List(caller(c.Request.Context()).Tenant, q, c.Query("cursor"), limit)
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, approvals{Items: p.Items, NextCursor: p.Next, EventsCursor: p.Events.String()})
}

// filterOf reads which approvals a client asks for.
func filterOf(c *gin.Context) (inbox.Filter, error) {
	q := inbox.Filter{Agent: c.Query("agent"), Tool: c.Query("tool"), Thread: c.Query("thread")}
	assignee, ok := c.GetQuery("assignee")
	if !ok {
		return q, nil
	}
	role, isRole := strings.CutPrefix(assignee, "role:")
	switch {
	case assignee == "" || isRole && role == "":
		return q, badRequest("invalid_input", "", "assignee must be me, a subject or role:name")
	case assignee == "me":
		p := caller(c.Request.Context())
		q.Assignee = &inbox.Assignee{Subject: p.Subject, Roles: p.Roles, Caller: true}
	case isRole:
		q.Assignee = &inbox.Assignee{Roles: []string{role}}
	default:
		q.Assignee = &inbox.Assignee{Subject: assignee}
	}
	return q, nil
}

// olderThan reads by when an approval must have been asked for; zero = whenever.
func olderThan(c *gin.Context, now time.Time) (time.Time, error) {
	text, ok := c.GetQuery("olderThan")
	if !ok {
		return time.Time{}, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age <= 0 {
		return time.Time{}, badRequest("invalid_input", "", "olderThan must be a duration, such as 4h or 30m")
	}
	return now.Add(-age), nil
}

// Cursors of lists that only grow count what was shown.

func cursorBehind(n int) string { return strconv.Itoa(n) }

func countBehind(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %.40q", stream.ErrInvalidCursor, cursor)
	}
	return n, nil
}

// feeds bounds those who follow the inbox on a node: each is a reader of its own on the log's side.
const feeds = 1000

// approvalEvents tells what happens to approvals, from now on or behind a cursor.
func (s *Server) approvalEvents(c *gin.Context) {
	after, err := s.feedCursor(c)
	var q inbox.Filter
	if err == nil {
		q, err = filterOf(c)
	}
	if err == nil && s.closed.Err() != nil {
		err = errDrain
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	if !s.streams.take() {
		s.refuse(c, errFull())
		return
	}
	defer s.streams.leave()
	if !s.feeds.take() {
		s.refuse(c, errFull())
		return
	}
	defer s.feeds.leave()
	feed, err := s.Inbox.Store.Follow(c.Request.Context(), caller(c.Request.Context()).Tenant, after)
	if err != nil {
		s.refuse(c, err)
		return
	}
	defer feed.Close()
	to, err := sse.NewWriter(c.Writer, s.Patience)
	if err != nil {
		return // the client is gone
	}
	s.pumpFeed(c.Request.Context(), feed, &q, to)
}

// feedCursor reads where a client goes on; nil = it comes for the first time.
func (s *Server) feedCursor(c *gin.Context) (*inbox.Cursor, error) {
	text := c.GetHeader("Last-Event-ID")
	if text == "" {
		text = c.Query("after")
	}
	if text == "" {
		return nil, nil
	}
	cursor, err := s.Inbox.Store.ParseCursor(text)
	return &cursor, err
}

// pumpFeed sends events until the client is gone, or something else ends that: then it comes back.
func (s *Server) pumpFeed(ctx context.Context, feed *inbox.Feed, q *inbox.Filter, to *sse.Writer) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.closed, func() { cancel(errDrain) })()
	end := telemetry.Viewer(ctx)
	var err error
	for err == nil {
		var m *inbox.Message
		m, err = feed.Next(ctx, s.Heartbeat)
		switch {
		case err != nil:
		case m == nil:
			to.Comment("heartbeat")
			err = to.Flush()
		case q.Picks(&m.Event):
			to.Event(m.Cursor.String(), m.JSON)
			err = to.Flush()
		}
	}
	if errors.Is(err, inbox.ErrBroken) {
		err = errors.Join(err, stream.ErrBehind) // the client is to come back, as one that has fallen behind
	}
	end(s.ending(ctx, err))
}
