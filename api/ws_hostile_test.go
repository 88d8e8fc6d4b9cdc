package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/perdure/perdure/api"
)

// TestHostileFrames: an invalid frame gets a short answer. It ends neither the socket nor the other
// requests on it.
func TestHostileFrames(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	c := node.dial()
	c.send(runFrame("open", inputOf("r1", "hello")))
	c.want("ack", "open")
	s := runs.next(node)
	for range 2 {
		c.want("event", "open")
	}
	long := strings.Repeat("x", 500_000)
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for _, tt := range []struct{ frame, wantID, wantCode, wantPointer string }{
		{`{"type":"ping","id":"` + long + `"}`, "", "invalid_frame", "/id"},
		{`{"type":"ping","id":` + strings.Repeat("1", 500_000) + `}`, "", "invalid_frame", "/id"},
		{`{"type":"ping","id":` + deep + `}`, "", "invalid_frame", ""},
		{`{"type":"` + long + `","id":"1"}`, "1", "invalid_frame", "/type"},
		{`{"type":"ping","id":"1"`, "", "invalid_frame", ""},
		{`{"type":"ping","id":"1"}{}`, "", "invalid_frame", ""},
		{`[` + strings.Repeat(`{"type":"ping","id":"1"},`, 1000) + `0]`, "", "invalid_frame", ""},
		{`"` + long + `"`, "", "invalid_frame", ""},
		{"\ufeff" + `{"type":"ping","id":"1"}`, "", "invalid_frame", ""},
		{`{"type":"run","id":"1","agent":"` + strings.Repeat("/", 1000) + `"}`, "1", "unknown_agent", ""},
		{`{"type":"run","id":"1","agent":"a"}`, "1", "invalid_input", "/input"},
		{`{"type":"run","id":"1","agent":"a","input":null}`, "1", "invalid_input", "/input"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"\u0000","runId":"r","messages":[]}}`, "1", "invalid_input", "/input/threadId"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"r","messages":[],"state":` + deep[99_000:101_000] + `}}`, "1", "invalid_input", "/input/state"},
		{`{"type":"subscribe","id":"1","threadId":"` + long + `"}`, "1", "invalid_input", "/threadId"},
		{`{"type":"subscribe","id":"1","threadId":"\ud800"}`, "1", "invalid_input", "/threadId"},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":""}`, "1", "invalid_input", "/runId"},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":"r1","after":"` + long + `"}`, "1", "invalid_cursor", ""},
		{`{"type":"cancel","id":"1","threadId":"t","runId":"r1","reason":"` + long + `"}`, "1", "invalid_input", "/reason"},
		{`{"type":"cancel","id":"1","threadId":"*","runId":">"}`, "1", "unknown_thread", ""},
		{`{"type":"steer","id":"1","threadId":"t","message":` + deep[99_900:100_100] + `}`, "1", "invalid_input", "/message"},
	} {
		c.send(tt.frame)
		f := c.next()
		whole, err := json.Marshal(f)
		if err != nil || f.Type != "error" || f.ID != tt.wantID || f.Code != tt.wantCode || f.Pointer != tt.wantPointer || len(whole) > 500 {
			t.Errorf("frame %.80s: got %.500s, want %s at %q", tt.frame, whole, tt.wantCode, tt.wantPointer)
		}
	}
	c.ping("1")
	s.say("still here")
	if f := c.want("event", "open"); !strings.Contains(string(f.Event), "still here") {
		t.Errorf("frame of the open stream: got %+v, want text with %q", f, "still here")
	}
	s.end()
	c.until("open", "end")
}

// TestIncompleteMessage: an incomplete message holds memory, so its time is bounded, and pings do
// not extend it. A client may be silent between messages.
func TestIncompleteMessage(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.BodyTime = 300 * time.Millisecond })
	quiet, half := node.dial(), node.dial()
	w, err := half.conn.NextWriter(websocket.TextMessage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(strings.Repeat(" ", 64<<10))); err != nil { // is sent in fragments, without the last one
		t.Fatal(err)
	}
	half.conn.SetPongHandler(func(string) error {
		return half.conn.WriteControl(websocket.PingMessage, nil, time.Time{})
	})
	if err := half.conn.WriteControl(websocket.PingMessage, nil, time.Time{}); err != nil {
		t.Fatal(err)
	}
	half.wantClosed(websocket.ClosePolicyViolation)
	quiet.ping("1")
}

// TestFloodOfSubscriptions: a flood of subscriptions costs no more than the bound, and the node
// serves other clients meanwhile.
func TestFloodOfSubscriptions(t *testing.T) {
	t.Parallel()
	node := setup(t)
	b := node.startActiveViewer()
	c := node.dial()
	const floods = 500
	for i := range floods {
		c.send(subscribeFrame(fmt.Sprint(i), "neighbor", ""))
		c.send(map[string]any{"type": "unsubscribe", "id": fmt.Sprint(i)})
	}
	for left := 0; left < floods; {
		switch f := c.next(); {
		case f.Type == "ack" && f.Request == "unsubscribe":
			left++
		case f.Type == "error" && f.Status != http.StatusTooManyRequests:
			t.Fatalf("error frame: got %+v, want the status %d", f, http.StatusTooManyRequests)
		}
	}
	c.ping("1")
	b.wantUntouched()
}
