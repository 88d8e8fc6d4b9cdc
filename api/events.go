package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/api/streams"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/view"
)

// runEvents serves GET /v1/threads/{thread}/runs/{run}/events: the events of a run after a cursor,
// joined, or from its first record. It answers 204 if the run has ended and no event follows the
// cursor.
//
// Important errors: 400 invalid_cursor, 404 unknown_run, 410 gone or log_replaced.
func (s *Server) runEvents(c *gin.Context) error {
	ctx := c.Request.Context()
	run, err := access.AddressRun(ctx, request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	mayRead, err := s.access.Reader(ctx, run.Thread)
	if err != nil {
		return err
	}
	var o view.Options
	if o.After, o.Generation, err = s.readerStart(c); err != nil {
		return err
	}
	if o.Join, err = request.Flag(c, "join", false); err != nil {
		return err
	}
	if o.Timestamps, err = request.Flag(c, "timestamps", false); err != nil {
		return err
	}
	if o.Join && c.Query("after") != "" {
		return problem.InvalidParameter("join", "join must not be combined with after")
	}
	if err := problem.InParameter("waitFor", s.finder.AwaitEffect(ctx, run.Thread, c.Query("waitFor"))); err != nil {
		return err
	}
	if err := s.finder.CheckRun(ctx, run, o.After); err != nil {
		return err
	}
	run, o, err = s.segmentAt(ctx, run, o)
	if err != nil {
		return err
	}
	view := s.views.Run(run, o)
	defer view.Close()
	view.Admit(mayRead)
	return s.showEvents(c, view, o.After)
}

// threadEvents serves GET /v1/threads/{thread}/events: the events of a thread, run after run.
// Without a cursor the stream joins the active run. A client may follow a thread that does not
// exist yet, and gets its first run. A page, and a stream with follow=false, need an existing
// thread, because they would end at once; they get 404 unknown_thread.
func (s *Server) threadEvents(c *gin.Context) error {
	thread, err := access.Address(c.Request.Context(), request.Segment(c, "thread"))
	if err != nil {
		return err
	}
	mayRead, err := s.access.Reader(c.Request.Context(), thread)
	if err != nil {
		return err
	}
	var o view.ThreadOptions
	if o.After, o.Generation, err = s.readerStart(c); err != nil {
		return err
	}
	if o.IncludeLater, err = request.Flag(c, "follow", true); err != nil {
		return err
	}
	if o.Timestamps, err = request.Flag(c, "timestamps", false); err != nil {
		return err
	}
	if err := problem.InParameter("waitFor", s.finder.AwaitEffect(c.Request.Context(), thread, c.Query("waitFor"))); err != nil {
		return err
	}
	// The view is attached before the checks: a record that is written between the two is not
	// missed.
	view := s.views.Thread(thread, o)
	defer view.Close()
	view.Admit(mayRead)
	if access.IsUnknown(mayRead(c.Request.Context())) {
		if err := streams.AwaitThread(c.Request.Context()); err != nil {
			return err
		}
	}
	if !o.IncludeLater || wantsPage(c) {
		if err := s.finder.CheckThread(c.Request.Context(), thread, o.After); err != nil {
			return err
		}
	}
	return s.showEvents(c, view, o.After)
}

// severalStreams serves POST /v1/streams: the events of several runs and threads in one response.
func (s *Server) severalStreams(c *gin.Context) error {
	body, err := s.ReadJSONBody(c)
	if err != nil {
		return err
	}
	return s.sockets.ServeStreams(c, body)
}

// showEvents answers with a page of JSON or with a stream, by the Accept header. It reads the first
// frames before it sends a status, so that an invalid cursor gets an error status of its own, and
// the end of the view gets 204.
func (s *Server) showEvents(c *gin.Context, view *view.View, after *stream.Cursor) error {
	limit, err := request.Limit(c)
	if err != nil {
		return err
	}
	if wantsPage(c) {
		return s.showEventPage(c, view, after, limit)
	}
	first, err := s.streams.First(c.Request.Context(), view)
	if errors.Is(err, io.EOF) {
		c.Status(http.StatusNoContent) // tells an EventSource to stop; a 200 would make it reconnect
		return nil
	}
	if err != nil {
		return err
	}
	s.streams.Show(c, view, first)
	return nil
}

// wantsPage reports whether the Accept header prefers JSON to server-sent events. Without the
// header the answer is a stream.
func wantsPage(c *gin.Context) bool {
	return c.NegotiateFormat("text/event-stream", gin.MIMEJSON) == gin.MIMEJSON
}

// eventPage is the JSON answer of the routes of events: the events that the log has now, without
// waiting for more.
type eventPage struct {
	Items []eventItem `json:"items"`
	// NextCursor is the cursor after the last item; "" = nothing follows the page. A client that
	// polls sends it again until items follow.
	NextCursor string `json:"nextCursor,omitempty"`
}

// eventItem is an event of a page.
type eventItem struct {
	// Cursor is missing inside the prelude of a join, like the ID of an SSE event: a reader cannot
	// continue between the events of a snapshot.
	Cursor string          `json:"cursor,omitempty"`
	Event  json.RawMessage `json:"event"`
}

// showEventPage answers with one page of the events of a view.
func (s *Server) showEventPage(c *gin.Context, view *view.View, after *stream.Cursor, limit int) error {
	p, err := readEventPage(c, view, after, limit)
	if err != nil {
		return err
	}
	return request.WritePage(c, p.Items, p.NextCursor,
		func(i eventItem) int { return len(i.Event) }, func(i eventItem) ([]byte, error) { return json.Marshal(i) })
}

// readEventPage reads up to limit events of the view's past, and at most about request.PageBytes
// bytes of them. It does not wait for live records. A page may exceed the bounds so that it ends
// with an event that has a cursor: otherwise the next page could not continue. It takes the room of
// the page while it reads; a node without room is a 503.
func readEventPage(c *gin.Context, view *view.View, after *stream.Cursor, limit int) (eventPage, error) {
	p := eventPage{Items: []eventItem{}}
	if after != nil {
		p.NextCursor = after.String()
	}
	bytes := 0
	for {
		frames, err := view.NextPast(c.Request.Context())
		if errors.Is(err, io.EOF) {
			p.NextCursor = ""
			return p, nil
		}
		// No frames: the view has shown all that the log has, and the run may continue.
		if err != nil || frames == nil {
			return p, err
		}
		for _, f := range frames {
			if (len(p.Items) >= limit || bytes >= request.PageBytes) && p.NextCursor != "" {
				return p, nil
			}
			bytes += len(f.Event)
			p.Items = append(p.Items, eventItem{Cursor: f.Cursor.String(), Event: f.Event})
			p.NextCursor = f.Cursor.String()
		}
		if err := request.HoldAnswer(c, bytes); err != nil {
			return p, err
		}
	}
}

// readerStart reads where a reader starts: its cursor, nil = none, and the generation of AG-UI
// that it speaks. Last-Event-ID takes precedence over the parameter after, because a browser that
// reconnects keeps the URL and updates only the header.
func (s *Server) readerStart(c *gin.Context) (*stream.Cursor, stream.Generation, error) {
	after := c.GetHeader("Last-Event-ID")
	if after == "" {
		after = c.Query("after")
	}
	var version *string
	if v, ok := c.GetQuery("protocolVersion"); ok {
		version = &v
	} else if streams.WantsBinary(c.Request) {
		current := agui.Version // the binary format exists in the current generation only
		version = &current
	}
	return s.finder.CursorAndGeneration(after, version)
}
