package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"net/http"

	"github.com/perdure/perdure/agui"
)

// Event is one event of a run or of a thread.
type Event struct {
	// Cursor is where a stream goes on behind the event; "" = nowhere, inside the beginning of a
	// thread.
	Cursor string
	// JSON is the event as it came.
	JSON json.RawMessage
	agui.Event
}

// Ends reports whether the event is the last one of its run.
func (e Event) Ends() bool {
	t := e.EventType()
	return t == agui.EventRunFinished || t == agui.EventRunError
}

// reader reads one stream over as many connections as that takes.
type reader[E any] struct {
	client *Client
	// request asks for what stands behind a cursor; "" = from the beginning.
	request func(after string) request
	decode  func(frame) (E, error)
	// last tells that a run is over with an event; nil = there is no such event.
	last func(E) bool
	// more tells that other runs may stand behind it; the server says when none does.
	more  bool
	after string
	over  bool // a run, with the last event; nothing has come since
	// begun are events before the first cursor. Who is cut there begins again, so they are shown
	// when it has come.
	begun []E
	size  int // of begun, in bytes
}

const streamType = "text/event-stream"

var (
	errOver    = errors.New("the stream is over")
	errAsk     = errors.New("the stream may be over")
	errStopped = errors.New("nobody reads any more")
)

// events reads until the stream is over, or its reader has enough.
func (r *reader[E]) events(ctx context.Context) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		pace := r.client.pace()
		for {
			err := r.connection(ctx, pace, yield)
			switch {
			case errors.Is(err, errOver), errors.Is(err, errStopped):
				return
			case errors.Is(err, errAsk):
				continue
			}
			if err = pace.again(ctx, err); err != nil {
				var none E
				yield(none, err)
				return
			}
		}
	}
}

// connection reads what one connection brings. Its error says why it ended, and is never nil.
func (r *reader[E]) connection(ctx context.Context, pace *pace, yield func(E, error) bool) error {
	request := r.request(r.after)
	request.header = map[string]string{"Accept": streamType}
	if request.body != nil {
		request.header["Content-Type"] = jsonType
	}
	if r.after != "" {
		request.header["Last-Event-ID"] = r.after
	}
	conn, err := r.client.open(ctx, request)
	if err != nil {
		return err
	}
	defer conn.close()
	if conn.resp.StatusCode == http.StatusNoContent {
		return errOver
	}
	if kind, _, _ := mime.ParseMediaType(conn.resp.Header.Get("Content-Type")); kind != streamType {
		return &Problem{Status: conn.resp.StatusCode, Title: "the answer is no stream of events but " + kind}
	}
	r.begun, r.size = nil, 0
	frames := newFrames(conn, maxAnswer)
	for {
		f, err := frames.next()
		if err != nil {
			return r.connectionError(err)
		}
		pace.reset()
		if err := r.show(f, yield); err != nil {
			return err
		}
	}
}

// connectionError says what the end of a connection means.
func (r *reader[E]) connectionError(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if r.over {
		r.over = false // it is asked for once: an answer without events is a loss
		return errAsk
	}
	return io.ErrUnexpectedEOF
}

// show shows a frame, and what came before the first cursor.
func (r *reader[E]) show(f frame, yield func(E, error) bool) error {
	event, err := r.decode(f)
	if err != nil {
		return &FrameError{err}
	}
	r.begun = append(r.begun, event)
	if r.size += len(f.data); r.size > maxAnswer && r.after == "" {
		return &TooLargeError{maxAnswer}
	}
	if f.id == "" && r.after == "" {
		return nil
	}
	events := r.begun
	r.begun, r.size = nil, 0
	if f.id != "" {
		r.after = f.id
	}
	for _, e := range events {
		if !yield(e, nil) {
			return errStopped
		}
	}
	if r.over = r.last != nil && r.last(event); r.over && !r.more {
		return errOver
	}
	return nil
}

func decodeEvent(f frame) (Event, error) {
	e, err := agui.Decode(f.data)
	return Event{Cursor: f.id, JSON: f.data, Event: e}, err
}
