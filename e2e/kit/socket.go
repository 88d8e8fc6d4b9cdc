package kit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// socket is a WebSocket to an api, on which one thing is asked for at a time.
type socket struct{ conn *websocket.Conn }

// socketFrame is a frame of the server, as far as tests look.
type socketFrame struct {
	Type   string          `json:"type"`
	ID     string          `json:"id"`
	Cursor string          `json:"cursor"`
	Event  json.RawMessage `json:"event"`
	Code   string          `json:"code"`
	Detail string          `json:"detail"`
	Result json.RawMessage `json:"result"`
}

func (p *Endpoint) Dial(t *testing.T) *socket {
	t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(p.Url("/v1/ws"), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return &socket{conn}
}

// Behind reads what comes behind a cursor of a run, to the run's end.
func (s *socket) Behind(in Input, cursor string) ([]Event, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
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
			return nil, fmt.Errorf("behind %s: %s: %s", cursor, f.Code, f.Detail)
		}
	}
}

func (s *socket) Send(t *testing.T, frame any) {
	t.Helper()
	if err := s.conn.WriteJSON(frame); err != nil {
		t.Fatal(err)
	}
}

func (s *socket) Next(t *testing.T) (f socketFrame) {
	t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	if err := s.conn.ReadJSON(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f socketFrame) ToEvent() Event {
	e := Event{ID: f.Cursor, Data: f.Event}
	e.Type = e.Member("type")
	return e
}
