package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// emitHalfMessages makes started runs emit half a message. The function it returns finishes a run.
func (n *node) emitHalfMessages() (goOn func(run string)) {
	n.t.Helper()
	attempts, places := map[string]*stream.Attempt{}, map[string]stream.Place{}
	n.temporal.start = func(in runs.Input) error {
		p := n.begin(in, "e-"+in.Run.ID)
		a, _, err := n.log.Begin(n.ctx(), p)
		if err != nil {
			return err
		}
		n.t.Cleanup(a.Close)
		attempts[in.Run.ID], places[in.Run.ID] = a, p
		return a.Emit(n.ctx(), &agui.TextMessageStart{MessageID: "m-" + in.Run.ID}, &agui.TextMessageContent{MessageID: "m-" + in.Run.ID, Delta: "Hel"})
	}
	return func(run string) {
		n.t.Helper()
		message := agui.Message{ID: "m-" + run, Role: agui.RoleAssistant, Content: agui.TextContent("Hello")}
		if _, err := attempts[run].Finish(n.ctx(), &stream.Result{Messages: []agui.Message{message}},
			&agui.TextMessageContent{MessageID: message.ID, Delta: "lo"}, &agui.TextMessageEnd{MessageID: message.ID}); err != nil {
			n.t.Error(err)
		}
		n.end(places[run])
	}
}

// frameReader is a response that a test reads frame by frame.
type frameReader struct {
	t     *testing.T
	body  *bufio.Scanner
	close func()
}

// watch opens a stream of events, which the test reads frame by frame.
func (n *node) watch(path string, header ...string) *frameReader {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodGet, n.http.URL+path, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	mustEqual(n.t, path+": status", resp.StatusCode, http.StatusOK)
	w := &frameReader{t: n.t, body: bufio.NewScanner(resp.Body), close: func() { _ = resp.Body.Close() }}
	n.t.Cleanup(w.close)
	return w
}

// until reads up to a line that contains a text, and returns the lines.
func (w *frameReader) until(text string) string {
	w.t.Helper()
	var read strings.Builder
	for w.body.Scan() {
		fmt.Fprintln(&read, w.body.Text())
		if strings.Contains(w.body.Text(), text) {
			return read.String()
		}
	}
	w.t.Fatalf("no %q in\n%s", text, read.String())
	return ""
}

// types lists the event types of a body.
func types(body string) string {
	var all []string
	for _, line := range strings.Split(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all = append(all, string(agui.TypeOf([]byte(data))))
		}
	}
	return strings.Join(all, " ")
}

// startRun posts an input and disconnects after the run's first text.
func (n *node) startRun(id string) {
	n.t.Helper()
	w := n.watchRun(inputOf(id, "hello"))
	w.until("TEXT_MESSAGE_CONTENT")
	w.close()
}

// watchRun posts an input and reads its run.
func (n *node) watchRun(in agui.RunAgentInput, query ...string) *frameReader {
	n.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		n.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(n.ctx(), http.MethodPost, n.http.URL+"/v1/agents/a/runs?"+strings.Join(query, "&"), strings.NewReader(string(body)))
	if err != nil {
		n.t.Fatal(err)
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	w := &frameReader{t: n.t, body: bufio.NewScanner(resp.Body), close: func() { _ = resp.Body.Close() }}
	n.t.Cleanup(w.close)
	return w
}

func TestJoinRun(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	goOn := node.emitHalfMessages()
	node.startRun("r1")
	const events = "/v1/threads/t/runs/r1/events"
	joined := node.watch(events + "?join=true")
	prelude := joined.until(`"delta":"Hel"`)
	want := "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT"
	mustEqual(t, "event types of the prelude", types(prelude), want)
	mustEqual(t, "number of cursors in the prelude", len(cursors(prelude)), 1)
	goOn("r1")
	rest := joined.until("RUN_FINISHED")
	again := node.do(http.MethodGet, events+"?join=true", "", "Last-Event-ID", cursors(prelude)[0]) // as an EventSource reconnects
	wantEqual(t, "event types after the prelude", types(again.body), types(rest))
	wantEqual(t, "cursors after the prelude", strings.Join(cursors(again.body), " "), strings.Join(cursors(rest), " "))
	ended := node.do(http.MethodGet, events+"?join=true", "")
	wantEqual(t, "event types of the ended run", types(ended.body), "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_FINISHED")
	wantEqual(t, "number of cursors of the ended run", len(cursors(ended.body)), 1)
}

// TestFollowThread: a thread's stream shows run after run, stays open between runs, and can be
// continued after each of its events.
func TestFollowThread(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat = 20 * time.Millisecond })
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	node.temporal.closed = func(string) {}
	goOn := node.emitHalfMessages()
	const events = "/v1/threads/t/events"
	early := node.watch(events) // a thread without runs
	early.until(": heartbeat")
	node.startRun("r1")
	goOn("r1")
	first := early.until("RUN_FINISHED")
	if want := "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END RUN_FINISHED"; types(first) != want {
		t.Errorf("event types of the first run = %q, want %q", types(first), want)
	}
	early.until(": heartbeat")
	node.startRun("r2")
	goOn("r2")
	second := early.until("RUN_FINISHED")
	if !strings.Contains(second, `"u-r2"`) {
		t.Errorf("events of the second run = %q, want text with %q", second, `"u-r2"`)
	}
	wantEqual(t, "event types of the second run", types(second), types(first))
	all := cursors(first + second)
	for i, cursor := range all {
		a := node.do(http.MethodGet, events+"?follow=false&after="+cursor, "")
		if want := all[i+1:]; strings.Join(cursors(a.body), " ") != strings.Join(want, " ") || (len(want) == 0) != (a.status == http.StatusNoContent) {
			t.Errorf("after event %d: got %d\n%s\nwant the cursors %q", i, a.status, a.body, want)
		}
	}
	late := node.do(http.MethodGet, events+"?follow=false", "")
	wantEqual(t, "event types of a late follower", types(late.body), "RUN_STARTED MESSAGES_SNAPSHOT STATE_SNAPSHOT RUN_FINISHED")
	if !strings.Contains(late.body, `"m-r2"`) {
		t.Errorf("later reader = %q, want text with %q", late.body, `"m-r2"`)
	}
	if !strings.Contains(late.body, `"u-r2"`) {
		t.Errorf("later reader = %q, want text with %q", late.body, `"u-r2"`)
	}
	wrong := node.do(http.MethodGet, "/v1/threads/t/runs/r1/events?after="+all[len(all)-1], "")
	wantEqual(t, "status of a cursor of another run", wrong.status, http.StatusBadRequest)
	wantEqual(t, "problem code", wrong.problem.Code, "invalid_cursor")
}

// TestFollowedThreadChecksActiveRun: a thread's stream notices that the workflow of the active
// run has ended.
func TestFollowedThreadChecksActiveRun(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.emitHalfMessages()
	node.temporal.status = func(execution string) (enums.WorkflowExecutionStatus, error) {
		if execution != "e-r1" {
			t.Errorf("checked execution: got %q, want e-r1", execution)
		}
		return enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
	}
	w := node.watch("/v1/threads/t/events")
	body, err := json.Marshal(inputOf("r1", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	node.do(http.MethodPost, "/v1/agents/a/runs", string(body))
	w.until("workflow_terminated")
}

// eventsPage is a page of events.
type eventsPage struct {
	Items []struct {
		Cursor string          `json:"cursor"`
		Event  json.RawMessage `json:"event"`
	} `json:"items"`
	NextCursor string `json:"nextCursor"`
}

// page returns a page of events.
func (n *node) page(path string) eventsPage {
	n.t.Helper()
	a := n.do(http.MethodGet, path, "", "Accept", "application/json")
	var p eventsPage
	err := json.Unmarshal([]byte(a.body), &p)
	if err != nil {
		n.t.Fatalf("%s: %v", path, err)
	}
	a.mustStatus(n.t, path+": status", http.StatusOK)
	mustEqual(n.t, path+": header Content-Type", a.header.Get("Content-Type"), "application/json; charset=utf-8")
	return p
}

func TestPagesOfEvents(t *testing.T) {
	t.Parallel()
	node := setup(t)
	goOn := node.emitHalfMessages()
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	node.startRun("r1")
	const events = "/v1/threads/t/runs/r1/events"
	running := node.page(events)
	mustEqual(t, "page of an active run: number of items", len(running.Items), 3)
	mustEqual(t, "page of an active run: cursor of the next page", running.NextCursor, running.Items[2].Cursor)
	rest := node.page(events + "?after=" + running.NextCursor)
	wantEqual(t, "page after the last event: number of items", len(rest.Items), 0)
	wantEqual(t, "page after the last event: cursor of the next page", rest.NextCursor, running.NextCursor)
	goOn("r1")
	want := cursors(node.do(http.MethodGet, events, "").body)
	var got []string
	for path := events + "?limit=2"; ; {
		p := node.page(path)
		for _, i := range p.Items {
			got = append(got, i.Cursor)
		}
		if len(p.Items) > 2 {
			t.Fatalf("page: got %d events, want at most 2", len(p.Items))
		}
		if p.NextCursor == "" {
			break
		}
		path = events + "?limit=2&after=" + p.NextCursor
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("cursors of the pages: got\n%v, want\n%v", got, want)
	}
	whole := node.page("/v1/threads/t/events?limit=1")
	mustEqual(t, "prelude in one page: number of items", len(whole.Items), 4)
	wantEqual(t, "prelude in one page: cursor of the first item", whole.Items[0].Cursor, "")
	wantEqual(t, "prelude in one page: cursor of the next page", whole.NextCursor, whole.Items[3].Cursor)
}

func TestBadRequestsForEvents(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r", "hello"))
	const run, thread = "/v1/threads/t/runs/r/events", "/v1/threads/t/events"
	cursor := cursors(node.do(http.MethodGet, run, "").body)[0]
	for _, c := range []struct {
		path, accept string
		wantStatus   int
		wantCode     string
	}{
		{run + "?join=true&after=" + cursor, "", 400, "invalid_input"},
		{run + "?join=yes", "", 400, "invalid_input"},
		{thread + "?follow=yes", "", 400, "invalid_input"},
		{thread + "?after=nonsense", "", 400, "invalid_cursor"},
		{"/v1/threads/other/events?after=" + cursor, "", 400, "invalid_cursor"},
		{"/v1/threads/other/events?follow=false", "", 404, "unknown_thread"},
		{"/v1/threads/other/events", "application/json", 404, "unknown_thread"},
		{"/v1/threads/" + strings.Repeat("x", 1001) + "/events", "", 400, "invalid_input"},
		{run + "?limit=0", "application/json", 400, "invalid_input"},
		{run + "?limit=501", "application/json", 400, "invalid_input"},
		{thread + "?limit=x", "application/json", 400, "invalid_input"},
		{run + "?limit=500", "application/json", 200, ""},
	} {
		if a := node.do(http.MethodGet, c.path, "", "Accept", c.accept); a.status != c.wantStatus || a.problem.Code != c.wantCode {
			t.Errorf("%.80s: %d %s, want %d %s", c.path, a.status, a.body, c.wantStatus, c.wantCode)
		}
	}
}
