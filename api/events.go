package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// runEvents answers with the events of a run: after a cursor, joined, or from its first record.
func (s *Server) runEvents(c *gin.Context) {
	run, err := request.RunOf(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	var o view.Options
	if o.After, o.Profile, err = s.attachmentOf(c); err == nil {
		o.Join, err = request.Flag(c, "join", false)
	}
	switch {
	case err != nil:
		s.Refuse(c, err)
		return
	case o.Join && c.Query("after") != "":
		s.Refuse(c, problem.BadRequest("invalid_input", "", "join is for clients without a cursor: send either join or after"))
		return
	}
	if err := s.find.AwaitEffect(c.Request.Context(), run.Thread, c.Query("waitFor")); err != nil {
		s.Refuse(c, err)
		return
	}
	if err := s.find.CheckRun(c.Request.Context(), run, o.After); err != nil {
		s.Refuse(c, err)
		return
	}
	run, o, err = s.segmentAt(c.Request.Context(), run, o)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	view := s.views.Run(run, o)
	defer view.Close()
	s.showEvents(c, view, o.After)
}

// threadEvents answers with the events of a thread, run after run: joined, or after a cursor. A
// thread without a record can be followed.
func (s *Server) threadEvents(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	var o view.ThreadOptions
	if o.After, o.Profile, err = s.attachmentOf(c); err == nil {
		o.Follow, err = request.Flag(c, "follow", true)
	}
	if err == nil {
		err = s.find.AwaitEffect(c.Request.Context(), thread, c.Query("waitFor"))
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	view := s.views.Thread(thread, o)
	defer view.Close()
	if !o.Follow || wantsPage(c) {
		if err := s.find.CheckThread(c.Request.Context(), thread, o.After); err != nil {
			s.Refuse(c, err)
			return
		}
	}
	s.showEvents(c, view, o.After)
}

// showEvents answers with a page or a stream. It reads the first frames before it answers, so that
// a wrong cursor has a status of its own.
func (s *Server) showEvents(c *gin.Context, view *view.View, after *stream.Cursor) {
	limit, err := request.Limit(c)
	switch {
	case err != nil:
		s.Refuse(c, err)
		return
	case wantsPage(c):
		s.showPage(c, view, after, limit)
		return
	}
	frames, err := view.NextPast(c.Request.Context())
	switch {
	case errors.Is(err, io.EOF):
		c.Status(http.StatusNoContent) // tells an EventSource to stop
	case err != nil:
		s.Refuse(c, err)
	default:
		s.streams.Show(c, view, frames)
	}
}

// wantsPage reports whether a client wants JSON instead of a stream.
func wantsPage(c *gin.Context) bool {
	return c.NegotiateFormat("text/event-stream", gin.MIMEJSON) == gin.MIMEJSON
}

// page is a part of the events that the log has by now.
type page struct {
	Items []item `json:"items"`
	// NextCursor is where the next page begins, as long as events may follow.
	NextCursor string `json:"nextCursor,omitempty"`
}

// item is an event of a page.
type item struct {
	// Cursor is missing inside a prelude, like the ID of an SSE event.
	Cursor string          `json:"cursor,omitempty"`
	Event  json.RawMessage `json:"event"`
}

func (s *Server) showPage(c *gin.Context, view *view.View, after *stream.Cursor, limit int) {
	p, err := readPage(c.Request.Context(), view, after, limit)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusOK, p)
}

// readPage reads a page.
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
			if (len(p.Items) >= limit || bytes >= request.PageBytes) && p.NextCursor != "" {
				return p, nil
			}
			bytes += len(f.Event)
			p.Items = append(p.Items, item{Cursor: f.Cursor.String(), Event: f.Event})
			p.NextCursor = f.Cursor.String()
		}
	}
}

// attachmentOf reads the cursor of a request, nil = none, and the protocol generation.
func (s *Server) attachmentOf(c *gin.Context) (*stream.Cursor, stream.Profile, error) {
	after := c.GetHeader("Last-Event-ID")
	if after == "" {
		after = c.Query("after")
	}
	var version *string
	if v, ok := c.GetQuery("protocolVersion"); ok {
		version = &v
	} else if streams.WantsBinary(c.Request) {
		current := agui.Version // the only generation that has this wire
		version = &current
	}
	return s.find.Position(after, version)
}
