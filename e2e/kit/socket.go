package kit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// socket is a WebSocket to an API, with one subscription at a time.
type socket struct{ conn *websocket.Conn }

// socketFrame is a frame from the server, with the members that tests read.
type socketFrame struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Cursor string          `json:"cursor"`
	Event  json.RawMessage `json:"event"`
	Code   string          `json:"code"`
	Detail string          `json:"detail"`
	Result json.RawMessage `json:"result"`
}

// Dial opens a WebSocket that closes when the test ends.
func (p *Endpoint) Dial(t *testing.T) *socket {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(p.URL("/v1/ws"), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return &socket{conn}
}

// ReadAfter subscribes to a run after a cursor and reads to the end of the run.
func (s *socket) ReadAfter(in Input, cursor string) ([]Event, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(WaitTimeout)); err != nil {
		return nil, err
	}
	ask := map[string]string{"type": "subscribe", "id": cursor, "threadId": in.ThreadID, "runId": in.RunID, "after": cursor}
	if err := s.conn.WriteJSON(ask); err != nil {
		return nil, err
	}
	var events []Event
	for {
		var f socketFrame
		if err := s.conn.ReadJSON(&f); err != nil {
			return nil, err
		}
		switch f.Type {
		case "event":
			events = append(events, f.ToEvent())
		case "end":
			return events, nil
		case "error":
			return nil, fmt.Errorf("after %s: %s: %s", cursor, f.Code, f.Detail)
		}
	}
}

// Send sends a frame.
func (s *socket) Send(t *testing.T, frame any) {
	t.Helper()
	if err := s.conn.WriteJSON(frame); err != nil {
		t.Fatal(err)
	}
}

// Next reads a frame.
func (s *socket) Next(t *testing.T) (f socketFrame) {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(WaitTimeout)); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.ReadJSON(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// ToEvent returns the event in the frame.
func (f socketFrame) ToEvent() Event {
	e := Event{ID: f.Cursor, Data: f.Event}
	e.Type = e.Member("type")
	return e
}
