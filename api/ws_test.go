package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// TestRunsShareSocket: several runs share a socket. Each frame names its request, and the events
// equal those of SSE byte for byte.
func TestRunsShareSocket(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	c := node.dial()
	speakers, got := map[string]*agentOutput{}, map[string][]string{}
	for _, thread := range []string{"t1", "t2"} {
		in := inputOf("r", "hello")
		in.ThreadID = thread
		c.send(runFrame("of "+thread, in))
		if f := c.want("ack", "of "+thread); f.Request != "run" || f.ThreadID != thread || f.RunID != "r" {
			t.Errorf("acknowledgement: got %+v, want the run r of %s", f, thread)
		}
		speakers[thread] = runs.next(node)
		for range 2 {
			got[thread] = append(got[thread], c.want("event", "of "+thread).line())
		}
	}
	for range 3 {
		for _, thread := range []string{"t2", "t1"} { // in turn: neither waits for the other's end
			speakers[thread].say("<" + thread + "> ✓\u2028")
			f := c.want("event", "of "+thread)
			wantEqual(t, "thread of the frame", f.ThreadID, thread)
			wantEqual(t, "run of the frame", f.RunID, "r")
			got[thread] = append(got[thread], f.line())
		}
	}
	for _, thread := range []string{"t1", "t2"} {
		speakers[thread].end()
		_, rest := c.until("of "+thread, "end")
		sse := node.do(http.MethodGet, "/v1/threads/"+thread+"/runs/r/events", "")
		if diff := cmp.Diff(sseLines(sse.body), append(got[thread], rest...)); diff != "" {
			t.Errorf("%s: (-SSE +socket):\n%s", thread, diff)
		}
	}
	c.ping("the socket serves on")
}

// TestSocketContinuesAfterCursor: after a disconnect at any event the next socket continues
// exactly. Cursors of SSE are valid for sockets, and the other way round.
func TestSocketContinuesAfterCursor(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	for cut := 1; cut <= 6; cut++ { // RUN_STARTED, START, three CONTENT, END; live
		run := "r" + strings.Repeat("x", cut)
		c := node.dial()
		c.send(runFrame("1", inputOf(run, "hello")))
		c.want("ack", "1")
		s := runs.next(node)
		for _, text := range []string{"one ", "two ", "three"} {
			s.say(text)
		}
		var head []string
		for len(head) < min(cut, 5) {
			head = append(head, c.want("event", "1").line())
		}
		if cut == 6 {
			s.end()
			head = append(head, c.want("event", "1").line())
		}
		c.disconnect()
		if cut < 6 {
			s.end()
		}
		all := sseLines(node.do(http.MethodGet, "/v1/threads/t/runs/"+run+"/events", "").body)
		if len(all) != 7 {
			t.Fatalf("events of SSE: got %q, want 7", all)
		}
		last := cursors(head[len(head)-1])[0]
		c = node.dial()
		c.send(subscribeFrame("1", run, last))
		c.want("ack", "1")
		_, rest := c.until("1", "end")
		if diff := cmp.Diff(all, slices.Concat(head, rest)); diff != "" {
			t.Errorf("disconnected after event %d (-SSE +sockets):\n%s", cut, diff)
		}
		sse := node.do(http.MethodGet, "/v1/threads/t/runs/"+run+"/events", "", "Last-Event-ID", last)
		if diff := cmp.Diff(rest, sseLines(sse.body)); diff != "" {
			t.Errorf("after cursor %d (-socket +SSE):\n%s", cut, diff)
		}
	}
}

// TestSocketShowsRunAgain: the same input over a socket and by POST is the same run. No event
// follows its end.
func TestSocketShowsRunAgain(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	posted := node.post(inputOf("r1", "hello"))
	c := node.dial("Sec-WebSocket-Protocol", "other, ag-ui.perdure.v1")
	wantEqual(t, "subprotocol", c.conn.Subprotocol(), "ag-ui.perdure.v1")
	c.send(runFrame("1", inputOf("r1", "hello")))
	c.want("ack", "1")
	_, lines := c.until("1", "end")
	wantEqual(t, "events of the socket", strings.Join(lines, "\n\n")+"\n\n", posted.body)
	wantEqual(t, "number of starts", len(node.temporal.starts), 1)
	ids := cursors(posted.body)
	c.send(subscribeFrame("1", "r1", ids[len(ids)-1])) // the ID is free again
	c.want("end", "1")

	// A first subscription may choose its protocol generation. A cursor has its own.
	c.send(map[string]any{"type": "subscribe", "id": "2", "threadId": "t", "runId": "r1", "protocolVersion": ""})
	c.want("ack", "2")
	if f := c.want("event", "2"); !strings.Contains(f.Cursor, "-0") {
		t.Errorf("cursor: got %s, want profile 0", f.Cursor)
	}
	c.until("2", "end")
	if plain := node.dial(); plain.conn.Subprotocol() != "" {
		t.Errorf("subprotocol: got %q, want none", plain.conn.Subprotocol())
	}
}

// TestSocketJoinsAndFollows: a subscription joins a run, and follows a thread from run to run, as
// requests do.
func TestSocketJoinsAndFollows(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.closed = func(string) {}
	goOn := node.emitHalfMessages()
	node.startRun("r1")
	c := node.dial()
	c.send(map[string]any{"type": "subscribe", "id": "1", "threadId": "t", "runId": "r1", "join": true})
	c.want("ack", "1")
	var joined []string
	for f := c.want("event", "1"); ; f = c.want("event", "1") {
		joined = append(joined, f.line())
		if f.Cursor != "" {
			break
		}
	}
	want := "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT"
	if got := types(strings.Join(joined, "\n")); got != want {
		t.Errorf("prelude: got %s, want %s", got, want)
	}
	goOn("r1")
	c.until("1", "end")

	c.send(map[string]any{"type": "subscribe", "id": "2", "threadId": "t"})
	if f := c.want("ack", "2"); f.ThreadID != "t" || f.RunID != "" {
		t.Errorf("acknowledgement of the subscription: got %+v, want the thread t without a run", f)
	}
	var followed []string
	read := func(run, last string) {
		t.Helper()
		for {
			f := c.want("event", "2")
			followed = append(followed, f.line())
			if f.RunID != run || f.ThreadID != "t" {
				t.Fatalf("event of run %q: got %+v with %s, want that run of t", run, f, f.Event)
			}
			if strings.Contains(string(f.Event), last) {
				return
			}
		}
	}
	read("r1", "RUN_FINISHED")
	node.startRun("r2")
	goOn("r2")
	read("r2", "RUN_FINISHED")
	if got := types(strings.Join(followed, "\n")); !strings.HasPrefix(got, "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_FINISHED RUN_STARTED MESSAGES_SNAPSHOT") {
		t.Errorf("events of the thread: got %s, want two runs, the second with a prelude", got)
	}
	c.send(map[string]any{"type": "subscribe", "id": "3", "threadId": "t", "follow": false, "after": cursors(followed[len(followed)-1])[0]})
	c.want("end", "3")
	c.send(map[string]any{"type": "unsubscribe", "id": "2"})
}

func TestSocketRefusals(t *testing.T) {
	t.Parallel()
	node := setup(t)
	other := setup(t)
	node.completeRuns()
	node.post(inputOf("done", "hello"))
	node.temporal.start = func(in runs.Input) error {
		if in.Run.ID == "out" {
			return serviceerror.NewUnavailable("SECRET ADDRESS")
		}
		return alreadyStarted("e-other")
	}
	node.temporal.submit = busyWith("other")
	node.temporal.steer = func(runs.SteerRequest) (runs.SteerResult, error) {
		return runs.SteerResult{}, temporal.NewApplicationError("over", runs.ErrorNotActive)
	}
	here := cursors(node.do(http.MethodGet, "/v1/threads/t/runs/done/events", "").body)[0]
	foreign := stream.Cursor{Position: stream.Position{Seq: 1}, Generation: stream.Generation1, Epoch: other.log.Epoch()}.String()
	valid := `{"threadId":"t","runId":"r","messages":[]}`
	c := node.dial()
	for _, x := range []struct {
		frame                 string
		wantStatus            int
		wantCode, wantPointer string
	}{
		{`{"type":"run","id":"1","agent":"nobody","input":` + valid + `}`, 404, "unknown_agent", ""},
		{`{"type":"run","id":"1","input":` + valid + `}`, 404, "unknown_agent", ""},
		{`{"type":"run","id":"1","agent":"a"}`, 400, "invalid_input", "/input"},
		{`{"type":"subscribe","id":"1","threadId":"t","run":"r"}`, 400, "invalid_frame", "/run"},
		{`{"type":"run","id":"1","agent":"a","input":[]}`, 400, "invalid_input", "/input"},
		{`{"type":"run","id":"1","agent":"a","input":{"runId":"r","messages":[]}}`, 400, "invalid_input", "/input/threadId"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"r","messages":[{"id":"1","role":"user","content":1}]}}`, 400, "invalid_input", "/input/messages/0/content"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"r","messages":[],"forwardedProps":{"perdure":{"history":"x"}}}}`, 400, "invalid_input", "/input/forwardedProps/perdure/history"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"r","messages":[],"protocolVersion":"2.0"}}`, 400, "unsupported_protocol_version", "/input/protocolVersion"},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"done","messages":[]}}`, 409, "run_id_reused", ""},
		{`{"type":"run","id":"1","agent":"a","input":` + valid + `}`, 409, "busy", ""},
		{`{"type":"run","id":"1","agent":"a","input":{"threadId":"t","runId":"out","messages":[]}}`, 503, "unavailable", ""},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":"nothing"}`, 404, "unknown_run", ""},
		{`{"type":"subscribe","id":"1","runId":"done"}`, 400, "invalid_input", "/threadId"},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":""}`, 400, "invalid_input", "/runId"},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":"done","after":"nonsense"}`, 400, "invalid_cursor", ""},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":"done","after":"` + foreign + `"}`, 410, "log_replaced", ""},
		{`{"type":"subscribe","id":"1","threadId":"nothing","follow":false}`, 404, "unknown_thread", ""},
		{`{"type":"subscribe","id":"1","threadId":""}`, 400, "invalid_input", "/threadId"},
		{`{"type":"subscribe","id":"1","threadId":"t","runId":"done","join":true,"after":"` + here + `"}`, 400, "invalid_frame", "/join"},
		{`{"type":"cancel","id":"1","threadId":"t","runId":"nothing"}`, 404, "unknown_run", ""},
		{`{"type":"cancel","id":"1","threadId":"t"}`, 400, "invalid_input", "/runId"},
		{`{"type":"cancel","id":"1","threadId":"t","runId":"done","reason":"` + strings.Repeat("x", 1001) + `"}`, 400, "invalid_input", "/reason"},
		{`{"type":"tool_result","id":"1"}`, 400, "invalid_input", "/threadId"},
		{`{"type":"tool_result","id":"1","threadId":"t"}`, 422, "invalid_tool_result", "/toolCallId"},
		{`{"type":"tool_result","id":"1","threadId":"t","toolCallId":7,"content":""}`, 422, "invalid_tool_result", "/toolCallId"},
		{`{"type":"tool_result","id":"1","threadId":"t","toolCallId":"c"}`, 422, "invalid_tool_result", "/content"},
		{`{"type":"tool_result","id":"1","threadId":"t","toolCallId":"c","content":[{"type":"image"}]}`, 422, "invalid_tool_result", "/content/0/source"},
		{`{"type":"tool_result","id":"1","threadId":"t","toolCallId":"c","content":"","error":7}`, 422, "invalid_tool_result", "/error"},
		{`{"type":"tool_result","id":"1","threadId":"t","toolCallId":"c","content":""}`, 404, "unknown_tool_call", ""},
		{`{"type":"decide","id":"1","threadId":"t"}`, 422, "invalid_answer", "/decision"},
		{`{"type":"decide","id":"1","threadId":"t","approvalId":"int","decision":"approve"}`, 404, "unknown_approval", ""},
		{`{"type":"decide","id":"1","decision":"approve"}`, 400, "invalid_input", "/threadId"},
		{`{"type":"steer","id":"1","threadId":"t"}`, 400, "invalid_input", "/message"},
		{`{"type":"steer","id":"1","threadId":"t","message":{"id":"m","role":"user","content":"hi"}}`, 409, "not_active", ""},
		{`{"type":"dance","id":"1"}`, 400, "invalid_frame", "/type"},
		{`{"id":"1"}`, 400, "invalid_frame", "/type"},
		{`{"type":"run","id":"1","agent":7}`, 400, "invalid_frame", "/agent"},
		{`{"type":"run","id":"1","agent":"a","input":` + valid + `,"reason":"x"}`, 400, "invalid_frame", "/reason"},
		{`{"type":"cancel","id":"1","threadId":"t","runId":"done","message":{}}`, 400, "invalid_frame", "/message"},
		{`{"type":"ping","id":"1","threadId":"t"}`, 400, "invalid_frame", "/threadId"},
	} {
		c.send(x.frame)
		f := c.want("error", "1")
		if f.Status != x.wantStatus || f.Code != x.wantCode || f.Pointer != x.wantPointer || f.Detail == "" {
			t.Errorf("%.120s: %+v, want %d %s %s", x.frame, f, x.wantStatus, x.wantCode, x.wantPointer)
		}
		wantEqual(t, fmt.Sprintf("%.120s: frame names the active run", x.frame), f.ActiveRun == "other", f.Code == "busy")
		wantEqual(t, fmt.Sprintf("%.120s: frame has a time to retry", x.frame), f.RetryAfter > 0, f.Code == "unavailable")
		if strings.Contains(f.Detail, "SECRET") {
			t.Errorf("%.120s: detail = %q, want no %q", x.frame, f.Detail, "SECRET")
		}
	}
	for _, frame := range []string{``, `{`, `[]`, `7`, `null`, `{"type":"ping"}`, `{"type":"ping","id":""}`, `{"type":"ping","id":7}`, `{"type":"ping","id":"` + strings.Repeat("x", 1001) + `"}`, `{"type":"ping","id":"1"}}`} {
		c.send(frame)
		if f := c.next(); f.Type != "error" || f.ID != "" || f.Code != "invalid_frame" || f.Status != 400 {
			t.Errorf("%.60s: got %+v, want invalid_frame without an ID", frame, f)
		}
	}
	c.ping("the socket serves on")
}

// TestSlowFrameDoesNotDelayOthers: a run may take long to start. Other requests of the socket
// are served meanwhile.
func TestSlowFrameDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("done", "hello"))
	release, start := make(chan struct{}), node.temporal.start
	node.temporal.start = func(in runs.Input) error { <-release; return start(in) }
	c := node.dial()
	in := inputOf("r1", "hello")
	in.ThreadID = "slow"
	c.send(runFrame("run", in))
	c.ping("1")
	c.send(runFrame("run", in))
	f := c.want("error", "run")
	wantEqual(t, "duplicate ID: code", f.Code, "duplicate_id")
	wantEqual(t, "duplicate ID: status", f.Status, http.StatusConflict)
	c.send(subscribeFrame("2", "done", ""))
	c.want("ack", "2")
	c.until("2", "end")
	close(release)
	c.want("ack", "run")
	_, events := c.until("run", "end")
	wantEqual(t, "number of events of the run", len(events), 2)
}

func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	c := node.dial()
	c.send(runFrame("1", inputOf("r1", "hello")))
	c.want("ack", "1")
	s := runs.next(node)
	c.want("event", "1")
	c.want("event", "1")
	c.send(map[string]any{"type": "unsubscribe", "id": "1"})
	f := c.want("ack", "1")
	wantEqual(t, "request of the acknowledgement", f.Request, "unsubscribe")
	s.say("not shown")
	c.send(map[string]any{"type": "unsubscribe", "id": "1"}) // again: no frame of the ID is sent, as requested
	c.want("ack", "1")
	c.send(subscribeFrame("1", "r1", "")) // unsubscribing does not cancel
	c.want("ack", "1")
	s.end()
	_, events := c.until("1", "end")
	wantEqual(t, "number of events of the run", len(events), 5)
}

func TestCancelOverSocket(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	cancelled := make(chan string, 1)
	node.temporal.cancel = func(run string) error { cancelled <- run; return nil }
	c := node.dial()
	c.send(runFrame("1", inputOf("r1", "hello")))
	c.want("ack", "1")
	s := runs.next(node)
	c.want("event", "1")
	c.want("event", "1")
	c.send(map[string]any{"type": "cancel", "id": "2", "threadId": "t", "runId": "r1", "reason": "enough"})
	f := c.want("ack", "2")
	wantEqual(t, "request of the acknowledgement", f.Request, "cancel")
	wantEqual(t, "thread of the acknowledgement", f.ThreadID, "t")
	wantEqual(t, "run of the acknowledgement", f.RunID, "r1")
	if got := <-cancelled; got != "r1" {
		t.Errorf("cancelled run: got %s, want r1", got)
	}
	s.end()
	c.until("1", "end")
	c.send(map[string]any{"type": "cancel", "id": "2", "threadId": "t", "runId": "r1"})
	c.want("ack", "2") // the run is over: no effect
}

// TestCancelBeforeClose: closing a socket cancels no run. A cancel frame before the close
// does.
func TestCancelBeforeClose(t *testing.T) {
	t.Parallel()
	node := setup(t)
	runs := node.captureOutputs()
	cancelled := make(chan string, 1)
	node.temporal.cancel = func(run string) error { cancelled <- run; return nil }
	c := node.dial()
	c.send(runFrame("1", inputOf("r1", "hello")))
	s := runs.next(node)
	c.disconnect()
	c = node.dial()
	c.send(subscribeFrame("1", "r1", ""))
	c.want("ack", "1")
	s.say("still here")
	for range 3 {
		c.want("event", "1")
	}
	select {
	case <-cancelled:
		t.Error("the disconnect cancelled the run")
	default:
	}
	c.send(map[string]any{"type": "cancel", "id": "2", "threadId": "t", "runId": "r1"})
	if err := c.conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")); err != nil {
		t.Fatal(err)
	}
	c.wantClosed(websocket.CloseNormalClosure)
	select {
	case <-cancelled:
	case <-node.ctx().Done():
		t.Error("the cancel before the close was lost")
	}
	s.end()
}

// TestPanicEndsOneRequest: a panic in one request does not end the others.
func TestPanicEndsOneRequest(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(runs.Input) error { panic("a bug") }
	c := node.dial()
	c.send(runFrame("1", inputOf("r1", "hello")))
	f := c.want("error", "1")
	wantEqual(t, "code of the frame", f.Code, "internal")
	wantEqual(t, "status of the frame", f.Status, 500)
	c.ping("1")
}

func TestOrigins(t *testing.T) {
	t.Parallel()
	listed := setup(t, func(c *api.Config) { c.Origins = []string{"https://app.example", "http://localhost:*"} })
	none, all := setup(t), setup(t, func(c *api.Config) { c.Origins = []string{"*"} })
	for _, c := range []struct {
		node     *node
		origin   string
		wantOpen bool
	}{
		{listed, "", true}, {listed, "https://app.example", true}, {listed, "http://localhost:5173", true}, {listed, listed.http.URL, true},
		{listed, "https://evil.example", false}, {listed, "https://app.example.evil.example", false}, {listed, "http://app.example", false}, {listed, "null", false},
		{none, "", true}, {none, none.http.URL, true}, {none, "https://app.example", false},
		{all, "https://anything.example", true}, {all, "null", true},
	} {
		conn, resp, err := websocket.DefaultDialer.DialContext(c.node.ctx(), wsURL(c.node.http.URL), http.Header{"Origin": {c.origin}})
		if err == nil {
			_ = conn.Close()
		}
		wantEqual(t, fmt.Sprintf("origin %q: socket opens", c.origin), err == nil, c.wantOpen)
		if err != nil && (resp.StatusCode != http.StatusForbidden || resp.Header.Get("Content-Type") != "application/problem+json") {
			t.Errorf("origin %q: got %s %s, want %d with a problem", c.origin, resp.Status, resp.Header.Get("Content-Type"), http.StatusForbidden)
		}
		// Requests follow the same rule, except those that browsers do not send across origins.
		if a := c.node.do(http.MethodGet, "/v1/agents", "", "Origin", c.origin); len(c.node.server.Origins) > 0 && (a.status == http.StatusOK) != c.wantOpen {
			t.Errorf("request of the origin %q: got %d, want %d: %t", c.origin, a.status, http.StatusOK, c.wantOpen)
		} else if a.status == http.StatusForbidden && (a.problem.Code != "origin_not_allowed" || !strings.Contains(a.problem.Detail, "PERDURE_CORS_ORIGINS")) {
			t.Errorf("request of the origin %q: got %s, want origin_not_allowed with the setting", c.origin, a.body)
		}
	}
}

func TestSocketRouteNeedsUpgrade(t *testing.T) {
	t.Parallel()
	node := setup(t)
	a := node.do(http.MethodGet, "/v1/ws", "")
	a.wantStatus(t, "status", http.StatusUpgradeRequired)
	wantEqual(t, "problem code", a.problem.Code, "upgrade_required")
	wantEqual(t, "header Upgrade", a.header.Get("Upgrade"), "websocket")
	if a := node.do(http.MethodGet, "/v1/agents/a", ""); !strings.Contains(a.body, `"websocket":true`) {
		t.Errorf("capabilities of the agent: got %s, want websocket", a.body)
	}
}
