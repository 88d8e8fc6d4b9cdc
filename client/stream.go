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

// Event is an event of a run or of a thread.
type Event struct {
	// Cursor is the position after the event, at which a stream can continue. It is "" within the
	// first events of a thread: a stream cannot continue there.
	Cursor string
	// JSON is the event as received.
	JSON json.RawMessage
	agui.Event
}

// Result returns the result of a run from its last event, any JSON. nil = the event has none, because its
// agent has no output, or the run did not succeed.
func (e Event) Result() json.RawMessage {
	finished, ok := e.Event.(*agui.RunFinished)
	if !ok {
		return nil
	}
	if string(finished.Metadata["perdure.nullResult"]) == "true" { // AG-UI omits a member that is null
		return json.RawMessage("null")
	}
	return finished.Result
}

// Ends reports whether the event is the last one of its run.
func (e Event) Ends() bool {
	t := e.EventType()
	return t == agui.EventRunFinished || t == agui.EventRunError
}

// reader reads one stream over as many connections as necessary. Each connection continues after
// the last cursor. It is used by one goroutine, in an iteration of its events.
type reader[E any] struct {
	client *Client
	// request returns the request for the events after a cursor; "" = from the beginning.
	request func(after string) request
	decode  func(frame) (E, error)
	// isLast reports whether an event is the last one of a run; nil = the stream has no runs.
	isLast func(E) bool
	// hasLaterRuns means that other runs may follow the last event of a run. The server ends the
	// stream when none does.
	hasLaterRuns bool
	// after is the cursor of the last event that was yielded.
	after    string
	runEnded bool // the last event was the last one of a run
	// pending are the events before the first cursor of the stream. A connection that is lost there
	// begins again, so they are yielded only when the cursor has arrived.
	pending []E
	size    int // of pending, in bytes
}

const streamType = "text/event-stream"

// errStreamEnded, errStreamMayHaveEnded and errStopped are ends of a connection that are no
// failures: the stream has ended, the server must be asked whether it has, or the caller has ended
// the iteration.
var (
	errStreamEnded        = errors.New("the stream is over")
	errStreamMayHaveEnded = errors.New("the stream may be over")
	errStopped            = errors.New("the caller has stopped reading")
)

// events returns the iteration. It yields events until the stream ends, and at most one error, as
// the last element. No goroutine outlives the iteration.
func (r *reader[E]) events(ctx context.Context) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		pace := r.client.pace()
		for {
			err := r.readConnection(ctx, pace, yield)
			switch {
			case errors.Is(err, errStreamEnded), errors.Is(err, errStopped):
				return
			case errors.Is(err, errStreamMayHaveEnded):
				continue
			}
			if err = pace.waitBeforeRetry(ctx, err); err != nil {
				var none E
				yield(none, err)
				return
			}
		}
	}
}

// readConnection opens one connection, and yields its events until it ends. It returns the reason
// of the end, which is never nil.
func (r *reader[E]) readConnection(ctx context.Context, pace *pace, yield func(E, error) bool) error {
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
		return errStreamEnded
	}
	if kind, _, _ := mime.ParseMediaType(conn.resp.Header.Get("Content-Type")); kind != streamType {
		return &Problem{Status: conn.resp.StatusCode, Title: "the answer is not an event stream but " + kind}
	}
	r.pending, r.size = nil, 0
	frames := newFrames(conn, maxResponseBytes)
	for {
		f, err := frames.next()
		if err != nil {
			return r.connectionError(err)
		}
		pace.reset()
		if err := r.yieldFrame(f, yield); err != nil {
			return err
		}
	}
}

// connectionError returns the reason of a connection's end. A regular end after the last event of a
// run may be the end of the stream. A server ends a stream only between runs, so any other regular
// end is a lost connection.
func (r *reader[E]) connectionError(err error) error {
	if !errors.Is(err, io.EOF) {
		return err
	}
	if r.runEnded {
		r.runEnded = false // the server is asked once: a further response without events is a lost connection
		return errStreamMayHaveEnded
	}
	return io.ErrUnexpectedEOF
}

// yieldFrame yields the event of a frame, after the events that wait for the first cursor.
func (r *reader[E]) yieldFrame(f frame, yield func(E, error) bool) error {
	event, err := r.decode(f)
	if err != nil {
		return &FrameError{err}
	}
	r.pending = append(r.pending, event)
	if r.size += len(f.data); r.size > maxResponseBytes && r.after == "" {
		return &TooLargeError{maxResponseBytes}
	}
	if f.id == "" && r.after == "" {
		return nil
	}
	events := r.pending
	r.pending, r.size = nil, 0
	if f.id != "" {
		r.after = f.id
	}
	for _, e := range events {
		if !yield(e, nil) {
			return errStopped
		}
	}
	if r.runEnded = r.isLast != nil && r.isLast(event); r.runEnded && !r.hasLaterRuns {
		return errStreamEnded
	}
	return nil
}

// decodeEvent decodes an AG-UI event.
func decodeEvent(f frame) (Event, error) {
	e, err := agui.Decode(f.data)
	return Event{Cursor: f.id, JSON: f.data, Event: e}, err
}
