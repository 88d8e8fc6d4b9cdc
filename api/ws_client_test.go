package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// wsClient is the client's end of a socket. Every wait ends with the test.
type wsClient struct {
	t    *testing.T
	conn *websocket.Conn
}

// wsFrame is a frame of the server, with the members of all types.
type wsFrame struct {
	Type       string          `json:"type"`
	ID         string          `json:"id"`
	Cursor     string          `json:"cursor"`
	ThreadID   string          `json:"threadId"`
	RunID      string          `json:"runId"`
	Event      json.RawMessage `json:"event"`
	Request    string          `json:"request"`
	Status     int             `json:"status"`
	Code       string          `json:"code"`
	Detail     string          `json:"detail"`
	Pointer    string          `json:"pointer"`
	ActiveRun  string          `json:"activeRun"`
	RetryAfter int             `json:"retryAfter"`
	Counted    bool            `json:"counted"`
	Quota      string          `json:"quota"`
	Limit      int64           `json:"limit"`
	Used       int64           `json:"used"`
	Result     json.RawMessage `json:"result"`
}

// line returns an event as a frame of a server-sent event stream.
func (f wsFrame) line() string { return "id: " + f.Cursor + "\ndata: " + string(f.Event) }

// wsURL returns the address of the socket route of a server.
func wsURL(base string) string { return "ws" + strings.TrimPrefix(base, "http") + "/v1/ws" }

// dial opens a socket.
func (n *node) dial(header ...string) *wsClient {
	n.t.Helper()
	return n.dialAt(wsURL(n.http.URL), header...)
}

// dialAt opens a socket at an address.
func (n *node) dialAt(url string, header ...string) *wsClient {
	n.t.Helper()
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	conn, _, err := websocket.DefaultDialer.DialContext(n.ctx(), url, h)
	if err != nil {
		n.t.Fatal(err)
	}
	c := &wsClient{t: n.t, conn: conn}
	n.t.Cleanup(c.disconnect)
	return c
}

// disconnect closes the connection without a close frame.
func (c *wsClient) disconnect() { _ = c.conn.Close() }

// send sends a frame: a string unchanged, any other value as JSON.
func (c *wsClient) send(frame any) {
	c.t.Helper()
	text, ok := frame.(string)
	if !ok {
		body, err := json.Marshal(frame)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(body)
	}
	if err := c.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// read reads one frame.
func (c *wsClient) read() (wsFrame, error) {
	kind, body, err := c.conn.ReadMessage()
	if err != nil {
		return wsFrame{}, err
	}
	wantNoMark(c.t, string(body))
	var f wsFrame
	if err := json.Unmarshal(body, &f); err != nil || kind != websocket.TextMessage {
		c.t.Fatalf("frame: got the message type %d: %v: %s, want a text message with JSON", kind, err, body)
	}
	return f, nil
}

// next reads one frame, and ends the test if there is none.
func (c *wsClient) next() wsFrame {
	c.t.Helper()
	f, err := c.read()
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

// want reads one frame and checks its type and ID.
func (c *wsClient) want(frameType, id string) wsFrame {
	c.t.Helper()
	f := c.next()
	if f.Type != frameType || f.ID != id {
		c.t.Fatalf("got %+v with the event %s, want %s of %q", f, f.Event, frameType, id)
	}
	return f
}

// until reads events of id up to the frame that ends it. It returns that frame and the events as
// server-sent event frames.
func (c *wsClient) until(id, frameType string) (wsFrame, []string) {
	c.t.Helper()
	var lines []string
	for {
		f := c.next()
		if f.ID != id || f.Type != "event" {
			if f.ID != id || f.Type != frameType {
				c.t.Fatalf("after %d events: got %+v, want %s of %q", len(lines), f, frameType, id)
			}
			return f, lines
		}
		lines = append(lines, f.line())
	}
}

// wantClosed reads to the end of the socket, which must have the code, and closes its side.
func (c *wsClient) wantClosed(code int) {
	c.t.Helper()
	defer c.disconnect()
	for {
		_, _, err := c.conn.ReadMessage()
		if err == nil {
			continue
		}
		var closed *websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != code {
			c.t.Errorf("end of the socket: got %v, want %d", err, code)
		}
		return
	}
}

// ping checks that the socket answers a ping, and has no other frame to send.
func (c *wsClient) ping(id string) {
	c.t.Helper()
	c.send(map[string]any{"type": "ping", "id": id})
	f := c.want("ack", id)
	wantEqual(c.t, "request of the answer", f.Request, "ping")
}

// runFrame returns a frame that starts a run.
func runFrame(id string, in agui.RunAgentInput) map[string]any {
	return map[string]any{"type": "run", "id": id, "agent": "a", "input": in}
}

// subscribeFrame returns a frame that subscribes to a run of the thread "t", after a cursor.
func subscribeFrame(id, run, after string) map[string]any {
	f := map[string]any{"type": "subscribe", "id": id, "threadId": "t", "runId": run}
	if after != "" {
		f["after"] = after
	}
	return f
}

// sseLines returns the events of a server-sent event response.
func sseLines(body string) []string {
	var lines []string
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(frame, "id: ") {
			lines = append(lines, frame)
		}
	}
	return lines
}

// agentOutput writes the output of an agent, as its activity would.
type agentOutput struct {
	n       *node
	place   stream.Place
	attempt *stream.Attempt
	text    string
}

const outputMessageID = "m1"

// openOutput starts the output of a run with the beginning of a message.
func (n *node) openOutput(in runs.Input) *agentOutput {
	n.t.Helper()
	s := &agentOutput{n: n, place: n.begin(in, "e-"+in.Run.Thread+in.Run.ID)}
	var err error
	if s.attempt, _, err = n.log.Begin(n.ctx(), s.place); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(s.attempt.Close)
	s.emit(&agui.TextMessageStart{MessageID: outputMessageID, Role: agui.RoleAssistant})
	return s
}

// emit writes an event.
func (s *agentOutput) emit(e agui.Event) {
	s.n.t.Helper()
	if err := s.attempt.Emit(s.n.ctx(), e); err != nil {
		s.n.t.Error(err)
	}
}

// say writes a part of the message.
func (s *agentOutput) say(text string) {
	s.n.t.Helper()
	s.text += text
	s.emit(&agui.TextMessageContent{MessageID: outputMessageID, Delta: text})
}

// end finishes the message and the run.
func (s *agentOutput) end() {
	s.n.t.Helper()
	result := &stream.Result{Messages: []agui.Message{{ID: outputMessageID, Role: agui.RoleAssistant, Content: agui.TextContent(s.text)}}}
	seq, err := s.attempt.Finish(s.n.ctx(), result, &agui.TextMessageEnd{MessageID: outputMessageID})
	if err != nil {
		s.n.t.Fatal(err)
	}
	s.place.After = seq
	s.n.end(s.place)
}

// captureOutputs makes started runs begin, and hands out their speakers.
func (n *node) captureOutputs() *capturedOutputs {
	all := &capturedOutputs{begun: make(chan *agentOutput, 16)}
	n.temporal.start = func(in runs.Input) error { all.begun <- n.openOutput(in); return nil }
	n.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	return all
}

type capturedOutputs struct{ begun chan *agentOutput }

// next returns the output of the next run that starts.
func (s *capturedOutputs) next(node *node) *agentOutput {
	node.t.Helper()
	select {
	case got := <-s.begun:
		return got
	case <-node.ctx().Done():
		node.t.Fatal("no run began")
		return nil
	}
}
