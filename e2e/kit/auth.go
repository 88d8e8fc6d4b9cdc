package kit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// RequestAs sends a request with a bearer token; "" = without a token. The arguments header are
// names and values of further headers.
func (p *Endpoint) RequestAs(t *testing.T, token, method, path string, body any, header ...string) *http.Response {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, p.URL(path), strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// WantProblem checks that the response refuses the request with this status and code.
func WantProblem(t *testing.T, resp *http.Response, status int, code string) {
	t.Helper()
	if p := ReadProblem(t, resp, nil); p.Status != status || p.Code != code {
		t.Errorf("%s %s: %+v, want %d %s", resp.Request.Method, resp.Request.URL.Path, p, status, code)
	}
}

// WantEvents reads the response as a stream of events to its end. A response that is not 200 fails
// the test.
func WantEvents(t *testing.T, resp *http.Response) []Event {
	t.Helper()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("request as a user: got %s, want %d: %.300s", resp.Status, http.StatusOK, body)
	}
	stream, err := ReadEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// Subscribe subscribes to a run over a WebSocket, with the token in the subprotocol as a browser
// sends it. It returns the code of the last frame and the number of events.
func (p *Endpoint) Subscribe(t *testing.T, token string, in Input) (code string, events int) {
	t.Helper()
	dialer := &websocket.Dialer{Subprotocols: []string{"ag-ui.perdure.v1", "bearer." + token}}
	conn, resp, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(p.URL("/v1/ws"), "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	defer func() { _ = conn.Close() }()
	if conn.Subprotocol() != "ag-ui.perdure.v1" {
		t.Errorf("subprotocol = %q, want ag-ui.perdure.v1", conn.Subprotocol())
	}
	if err := conn.SetReadDeadline(time.Now().Add(WaitTimeout)); err != nil {
		t.Fatal(err)
	}
	if err := conn.WriteJSON(map[string]string{"type": "subscribe", "id": "s", "threadId": in.ThreadID, "runId": in.RunID}); err != nil {
		t.Fatal(err)
	}
	for {
		var f socketFrame
		if err := conn.ReadJSON(&f); err != nil {
			t.Fatal(err)
		}
		switch f.Type {
		case "event":
			events++
		case "end", "error":
			return f.Code, events
		}
	}
}
