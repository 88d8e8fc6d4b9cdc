package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// runEvents shows a run again: behind a cursor, as it stands, or from its start.
func (s *Server) runEvents(c *gin.Context) {
	run, err := runOf(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	var o view.Options
	if o.After, o.Profile, err = s.attachmentOf(c); err == nil {
		o.Join, err = flag(c, "join", false)
	}
	switch {
	case err != nil:
		s.refuse(c, err)
		return
	case o.Join && c.Query("after") != "":
		s.refuse(c, badRequest("invalid_input", "", "join is for clients without a cursor: send either join or after"))
		return
	}
	if err := s.awaitShown(c.Request.Context(), run.Thread, c.Query("waitFor")); err != nil {
		s.refuse(c, err)
		return
	}
	if err := s.knows(c.Request.Context(), run, o.After); err != nil {
		s.refuse(c, err)
		return
	}
	run, o, err = s.segmentAt(c.Request.Context(), run, o)
	if err != nil {
		s.refuse(c, err)
		return
	}
	view := s.views.Run(run, o)
	defer view.Close()
	s.showEvents(c, view, o.After)
}

// knows refuses a run that the log has nothing of. That a cursor was of a thread which was purged comes
// first.
func (s *Server) knows(ctx context.Context, run stream.Run, after *stream.Cursor) error {
	known, err := s.Log.Known(ctx, run)
	if err == nil && !known {
		err = s.purgedOr(ctx, after, errNoRun(run))
	}
	return err
}

// knowsThread is knows for a whole thread.
func (s *Server) knowsThread(ctx context.Context, thread stream.Thread, after *stream.Cursor) error {
	known, err := s.Log.KnownThread(ctx, thread)
	if err == nil && !known {
		err = s.purgedOr(ctx, after, errNoThread(thread))
	}
	return err
}

// purgedOr tells that a cursor's place is gone, or else something different.
func (s *Server) purgedOr(ctx context.Context, after *stream.Cursor, otherwise error) error {
	if after == nil {
		return otherwise
	}
	if err := s.Log.Check(ctx, *after); err != nil {
		return err
	}
	return otherwise
}

// threadEvents shows a thread: as it stands, or behind a cursor, and then run after run. A thread that
// has nothing yet can be followed.
func (s *Server) threadEvents(c *gin.Context) {
	thread, err := threadOf(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	var o view.ThreadOptions
	if o.After, o.Profile, err = s.attachmentOf(c); err == nil {
		o.Follow, err = flag(c, "follow", true)
	}
	if err == nil {
		err = s.awaitShown(c.Request.Context(), thread, c.Query("waitFor"))
	}
	if err != nil {
		s.refuse(c, err)
		return
	}
	view := s.views.Thread(thread, o)
	defer view.Close()
	if !o.Follow || wantsPage(c) {
		if err := s.knowsThread(c.Request.Context(), thread, o.After); err != nil {
			s.refuse(c, err)
			return
		}
	}
	s.showEvents(c, view, o.After)
}

// showEvents answers with a page or with a stream. What is at hand comes first, so that what is wrong
// with a cursor has a status of its own.
func (s *Server) showEvents(c *gin.Context, view *view.View, after *stream.Cursor) {
	if wantsPage(c) {
		s.showPage(c, view, after)
		return
	}
	frames, err := view.NextPast(c.Request.Context())
	switch {
	case errors.Is(err, io.EOF):
		c.Status(http.StatusNoContent) // tells an EventSource to stop
	case err != nil:
		s.refuse(c, err)
	default:
		s.show(c, view, frames)
	}
}

// wantsPage tells whether a client asks for JSON rather than for a stream.
func wantsPage(c *gin.Context) bool {
	return c.NegotiateFormat("text/event-stream", gin.MIMEJSON) == gin.MIMEJSON
}

// Bounds of a page, in events and in bytes. It ends at the first that is reached, except that a prelude
// is not torn apart.
const (
	pageLimit    = 100
	maxPageLimit = 500
	pageBytes    = 4 << 20
)

// page is a part of what the log has by now.
type page struct {
	Items []item `json:"items"`
	// NextCursor is where the next page begins, as long as something may follow.
	NextCursor string `json:"nextCursor,omitempty"`
}

type item struct {
	// Cursor is missing inside a prelude, like the id of an event.
	Cursor string          `json:"cursor,omitempty"`
	Event  json.RawMessage `json:"event"`
}

func (s *Server) showPage(c *gin.Context, view *view.View, after *stream.Cursor) {
	limit, err := limitOf(c)
	if err != nil {
		s.refuse(c, err)
		return
	}
	p, err := readPage(c.Request.Context(), view, after, limit)
	if err != nil {
		s.refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, p)
}

// readPage reads what the log has by now.
func readPage(ctx context.Context, view *view.View, after *stream.Cursor, limit int) (page, error) {
	p := page{Items: []item{}}
	if after != nil {
		p.NextCursor = after.String()
	}
	bytes := 0
	for {
		frames, err := view.NextPast(ctx)
		if errors.Is(err, io.EOF) {
			p.NextCursor = ""
			return p, nil
		}
		if err != nil || frames == nil {
			return p, err
		}
		for _, f := range frames {
			if (len(p.Items) >= limit || bytes >= pageBytes) && p.NextCursor != "" {
				return p, nil
			}
			bytes += len(f.Event)
			p.Items = append(p.Items, item{Cursor: f.Cursor.String(), Event: f.Event})
			p.NextCursor = f.Cursor.String()
		}
	}
}

func limitOf(c *gin.Context) (int, error) {
	text, ok := c.GetQuery("limit")
	if !ok {
		return pageLimit, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPageLimit {
		return 0, badRequest("invalid_input", "", fmt.Sprintf("limit must be a number from 1 to %d", maxPageLimit))
	}
	return limit, nil
}

// attachmentOf reads where a client goes on, nil = it comes for the first time, and how it is to be
// spoken to.
func (s *Server) attachmentOf(c *gin.Context) (*stream.Cursor, stream.Profile, error) {
	after := c.GetHeader("Last-Event-ID")
	if after == "" {
		after = c.Query("after")
	}
	var version *string
	if v, ok := c.GetQuery("protocolVersion"); ok {
		version = &v
	} else if wantsBinary(c.Request) {
		current := agui.Version // the only generation that has this wire
		version = &current
	}
	return s.attachment(after, version)
}

// attachment is what a client says on whatever transport: a cursor or "", a version or nil. A cursor
// brings a profile of its own.
func (s *Server) attachment(after string, version *string) (*stream.Cursor, stream.Profile, error) {
	var profile stream.Profile
	if version != nil {
		profile = stream.ProfileOf(*version)
	}
	if after == "" {
		return nil, profile, nil
	}
	cursor, err := s.Log.ParseCursor(after)
	return &cursor, profile, err
}

// flag reads a parameter that is true or false.
func flag(c *gin.Context, name string, missing bool) (bool, error) {
	switch c.Query(name) {
	case "":
		return missing, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, badRequest("invalid_input", "", name+" must be true or false")
}
