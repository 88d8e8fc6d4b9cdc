package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// withThreadList gives a node a list of threads.
func withThreadList(t *testing.T) func(*api.Config) {
	return func(c *api.Config) {
		x, err := threads.Watch(t.Context(), c.Log)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Stop)
		c.Threads = x
	}
}

// answerRuns makes started runs answer and end.
func (n *node) answerRuns() {
	n.temporal.start = func(in runs.Input) error {
		p := stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: "e-" + in.Run.ID}
		var err error
		if p.After, err = n.snapshots.OpenRun(n.ctx(), p, stream.Opening{Agent: in.Agent, Revision: in.Revision, Input: in.Input, Digest: in.Digest}); err != nil {
			return err
		}
		a, _, err := n.log.Begin(n.ctx(), p)
		if err != nil {
			return err
		}
		defer a.Close()
		message := agui.Message{ID: "a-" + in.Run.ID, Role: agui.RoleAssistant, Content: agui.TextContent("answer to " + in.Run.ID)}
		_, err = a.Finish(n.ctx(), &stream.Result{Messages: []agui.Message{message}},
			&agui.TextMessageStart{MessageID: message.ID, Role: agui.RoleAssistant}, &agui.TextMessageContent{MessageID: message.ID, Delta: message.Content.Text()},
			&agui.TextMessageEnd{MessageID: message.ID})
		if err == nil {
			tokens := int64(3)
			_, _, err = n.log.Seal(n.ctx(), p, &agui.RunFinished{ThreadID: in.Run.Thread, RunID: in.Run.ID, Usage: []agui.TokenUsage{{Provider: "test", Model: "m", TotalTokens: &tokens}}})
		}
		return err
	}
}

// postMessage posts a run that appends a message to a thread.
func (n *node) postMessage(thread, run string, more ...func(*agui.RunAgentInput)) answer {
	n.t.Helper()
	in := inputOf(run, "said in "+run)
	in.ThreadID, in.ForwardedProps = thread, json.RawMessage(`{"perdure":{"history":"append"}}`)
	for _, m := range more {
		m(&in)
	}
	return n.post(in)
}

// withForwardedProps sets the forwarded properties of an input.
func withForwardedProps(text string) func(*agui.RunAgentInput) {
	return func(in *agui.RunAgentInput) { in.ForwardedProps = json.RawMessage(text) }
}

// withParentRun sets the parent run of an input.
func withParentRun(run string) func(*agui.RunAgentInput) {
	return func(in *agui.RunAgentInput) { in.ParentRunID = run }
}

// get reads an answer with status 200 into a value.
func (n *node) get(path string, into any) {
	n.t.Helper()
	a := n.do(http.MethodGet, path, "")
	a.mustStatus(n.t, fmt.Sprintf("GET %s: status", path), http.StatusOK)
	err := json.Unmarshal([]byte(a.body), into)
	if err != nil {
		n.t.Fatalf("GET %s: %v", path, err)
	}
}

// list is a page of messages, runs or threads.
type list struct {
	Items []struct {
		ID       string `json:"id"`
		RunID    string `json:"runId"`
		ThreadID string `json:"threadId"`
		Status   string `json:"status"`
		Outcome  string `json:"outcome"`
		Agent    string `json:"agent"`
		Ended    string `json:"endedAt"`
		Usage    []agui.TokenUsage
	} `json:"items"`
	NextCursor string `json:"nextCursor"`
}

// messages returns the IDs of a thread's messages.
func (n *node) messages(thread string) string {
	n.t.Helper()
	var p list
	n.get("/v1/threads/"+thread+"/messages", &p)
	var ids []string
	for _, it := range p.Items {
		ids = append(ids, it.ID)
	}
	return strings.Join(ids, " ")
}

func TestReadThread(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	node.answerRuns()
	for i := range 3 {
		node.postMessage("t", fmt.Sprint("r", i), func(in *agui.RunAgentInput) { in.State = json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)) })
	}
	var sum struct {
		ThreadID, Agent, Status, RunID string
		Runs, Messages                 int
		Usage                          []agui.TokenUsage
		UpdatedAt                      time.Time
	}
	node.get("/v1/threads/t", &sum)
	wantEqual(t, "thread of the summary", sum.ThreadID, "t")
	wantEqual(t, "agent of the summary", sum.Agent, "a")
	wantEqual(t, "status of the summary", sum.Status, "idle")
	wantEqual(t, "run of the summary", sum.RunID, "r2")
	mustEqual(t, "number of runs of the summary", sum.Runs, 3)
	mustEqual(t, "number of messages of the summary", sum.Messages, 6)
	mustEqual(t, "number of models in the usage", len(sum.Usage), 1)
	wantEqual(t, "total tokens of the summary", *sum.Usage[0].TotalTokens, 9)
	if time.Since(sum.UpdatedAt) > time.Minute {
		t.Errorf("time since the update of the summary = %v, want at most %v", time.Since(sum.UpdatedAt), time.Minute)
	}
	got := node.messages("t")
	wantEqual(t, "messages", got, "u-r0 a-r0 u-r1 a-r1 u-r2 a-r2")
	a := node.do(http.MethodGet, "/v1/threads/t/state", "")
	wantEqual(t, "answer for the state", a.body, `{"state":{"n":2}}`)
	var p list
	node.get("/v1/threads/t/runs?limit=2", &p)
	mustEqual(t, "number of runs of the first page", len(p.Items), 2)
	wantEqual(t, "first run", p.Items[0].RunID, "r2")
	wantEqual(t, "outcome of the first run", p.Items[0].Outcome, "success")
	wantEqual(t, "agent of the first run", p.Items[0].Agent, "a")
	if p.Items[0].Ended == "" {
		t.Error("end time of the first run is empty, want a value")
	}
	wantEqual(t, "second run", p.Items[1].RunID, "r1")
	for _, run := range p.Items {
		mustEqual(t, fmt.Sprintf("number of models in the usage of run %s", run.RunID), len(run.Usage), 1)
		wantEqual(t, fmt.Sprintf("total tokens of run %s", run.RunID), *run.Usage[0].TotalTokens, 3)
	}
	rest := list{}
	node.get("/v1/threads/t/runs?limit=2&cursor="+p.NextCursor, &rest)
	mustEqual(t, "number of runs of the second page", len(rest.Items), 1)
	wantEqual(t, "run of the second page", rest.Items[0].RunID, "r0")
	wantEqual(t, "cursor after the last page", rest.NextCursor, "")
}

// TestPagesShowOneConversation: all pages show the conversation at the time of the first
// page.
func TestPagesShowOneConversation(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.postMessage("t", "r0")
	node.postMessage("t", "r1")
	var p list
	node.get("/v1/threads/t/messages?limit=1", &p)
	node.postMessage("t", "r2", withPerdureProps(`{"history":"replace"}`)) // supersedes the conversation
	ids := []string{p.Items[0].ID}
	for p.NextCursor != "" {
		cursor := p.NextCursor
		p = list{}
		node.get("/v1/threads/t/messages?limit=1&cursor="+cursor, &p)
		ids = append(ids, p.Items[0].ID)
	}
	if want := []string{"u-r0", "a-r0", "u-r1", "a-r1"}; !slices.Equal(ids, want) {
		t.Errorf("messages of the pages: got %q, want %q", ids, want)
	}
	got := node.messages("t")
	wantEqual(t, "current messages", got, "u-r2 a-r2")
	node.postMessage("other", "r0")
	for _, cursor := range []string{"x", "000000000001", "000000000001-", "000000000001--1", "000000000001-0x", "ffffffffffff-1"} {
		if a := node.do(http.MethodGet, "/v1/threads/other/messages?cursor="+cursor, ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" {
			t.Errorf("cursor %s: got %d %s, want %d invalid_cursor", cursor, a.status, a.body, http.StatusBadRequest)
		}
	}
	if a := node.do(http.MethodGet, "/v1/threads/other/messages?cursor=000000000001-0", ""); a.status != http.StatusBadRequest {
		t.Errorf("cursor of another thread: status = %v, want %v; body: %s", a.status, http.StatusBadRequest, a.body)
	}
}

func TestListThreads(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	node.answerRuns()
	node.postMessage("t1", "r")
	node.postMessage("t2", "r")
	node.temporal.start = func(in runs.Input) error {
		end := &agui.RunFinished{ThreadID: in.Run.Thread, RunID: in.Run.ID, BaseEvent: agui.BaseEvent{Metadata: agui.Metadata{stream.MetadataCost: json.RawMessage(`{"amount":0.25,"currency":"EUR"}`)}}}
		_, _, err := node.log.Seal(node.ctx(), node.begin(in, "e"), end)
		return err
	}
	node.postMessage("t25", "r")
	node.temporal.start = func(in runs.Input) error { node.interrupts(node.begin(in, "e")); return nil }
	node.postMessage("t3", "r")
	node.temporal.start = func(in runs.Input) error {
		p := stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
		_, err := node.snapshots.OpenRun(node.ctx(), p, stream.Opening{Agent: "b", Input: in.Input, Digest: in.Digest})
		return err
	}
	ctx, cancel := context.WithCancel(node.ctx())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, node.http.URL+"/v1/agents/a/runs", strings.NewReader(encodeInput(t, func() agui.RunAgentInput {
		in := inputOf("r", "hello")
		in.ThreadID = "t4"
		return in
	}())))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := node.http.Client().Do(req) // answers after the run has begun
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()

	retrying := stream.Retrying{Step: "1/model", Activity: runs.ActivityCallModel, Attempt: 2, Error: "the model is unavailable", Since: time.Now()}
	if err := node.log.SetRetrying(node.ctx(), stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t4"}, ID: "r"}, retrying); err != nil {
		t.Fatal(err)
	}
	if a := node.do(http.MethodGet, "/v1/threads/t4", ""); !strings.Contains(a.body, `"attempt":2,"error":"the model is unavailable"`) {
		t.Errorf("summary of a thread that is retrying: got %s, want the reason", a.body)
	}
	for query, want := range map[string]string{
		"?retrying=true":                     "t4 running",
		"?retrying=false":                    "t4 running, t3 waiting, t25 idle, t2 idle, t1 idle",
		"":                                   "t4 running, t3 waiting, t25 idle, t2 idle, t1 idle",
		"?agent=b":                           "t4 running",
		"?status=idle":                       "t25 idle, t2 idle, t1 idle",
		"?status=failed":                     "",
		"?minCost=0":                         "t25 idle",
		"?minCost=0.25&maxCost=0.3":          "t25 idle",
		"?minCost=0.26":                      "",
		"?status=waiting&agent=c":            "",
		"?updatedAfter=2000-01-01T00:00:00Z": "t4 running, t3 waiting, t25 idle, t2 idle, t1 idle",
		"?updatedBefore=2000-01-01T00:00:00%2B02:00": "",
	} {
		node.awaitList(query, want)
	}
	var first, second list
	node.get("/v1/threads?limit=3", &first)
	node.get("/v1/threads?limit=3&cursor="+first.NextCursor, &second)
	mustEqual(t, "number of threads of the first page", len(first.Items), 3)
	mustEqual(t, "number of threads of the second page", len(second.Items), 2)
	wantEqual(t, "last thread of the second page", second.Items[1].ThreadID, "t1")
	wantEqual(t, "cursor after the last page", second.NextCursor, "")
	for _, query := range []string{"?limit=0", "?limit=501", "?status=busy", "?retrying=maybe", "?minCost=-1", "?maxCost=much", "?updatedAfter=yesterday", "?updatedBefore=", "?cursor=x"} {
		a := node.do(http.MethodGet, "/v1/threads"+query, "")
		a.wantStatus(t, query+": status", http.StatusBadRequest)
	}
}

// awaitList waits until a list is as wanted: it receives changes with a delay.
func (n *node) awaitList(query, want string) {
	n.t.Helper()
	ctx, look := n.ctx(), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for {
		var p list
		n.get("/v1/threads"+query, &p)
		var all []string
		for _, it := range p.Items {
			all = append(all, it.ThreadID+" "+it.Status)
		}
		got := strings.Join(all, ", ")
		if got == want {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			n.t.Fatalf("list %q: got %q, want %q", query, got, want)
		}
	}
}

// interrupts ends a run with an interrupt.
func (n *node) interrupts(p stream.Place) {
	interrupts := []agui.Interrupt{{ID: question, Reason: "tool_call", ToolCallID: "c1"}}
	end := &agui.RunFinished{ThreadID: p.Run.Thread.ID, RunID: p.Run.ID, Outcome: &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: interrupts}}
	if _, _, err := n.log.Seal(n.ctx(), p, end); err != nil {
		n.t.Error(err)
	}
}

// TestSummariesOfThreads: a summary lists the open interrupts of a thread. A run whose workflow is
// dead does not count as active.
func TestSummariesOfThreads(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.interrupts(node.begin(in, "e")); return nil }
	node.postMessage("asks", "r")
	if a := node.do(http.MethodGet, "/v1/threads/asks", ""); !strings.Contains(a.body, `"status":"waiting"`) || !strings.Contains(a.body, `"waiting":{"interrupts":[{"id":"`+question) {
		t.Errorf("waiting thread: got %s, want the status waiting and its question", a.body)
	}
	p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "dead"}, ID: "r"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	if _, err := node.snapshots.OpenRun(node.ctx(), p, stream.Opening{Agent: "a", Continues: "r0"}); err != nil {
		t.Fatal(err)
	}
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
	}
	if a := node.do(http.MethodGet, "/v1/threads/dead", ""); !strings.Contains(a.body, `"status":"failed"`) {
		t.Errorf("thread with a dead workflow: got %s, want the status failed", a.body)
	}
	if a := node.do(http.MethodGet, "/v1/threads/dead/runs", ""); !strings.Contains(a.body, `"outcome":"error","code":"workflow_terminated"`) {
		t.Errorf("run with a dead workflow: got %s, want the error workflow_terminated", a.body)
	}
	for _, path := range []string{"", "/messages", "/state", "/runs"} {
		if a := node.do(http.MethodGet, "/v1/threads/unknown"+path, ""); a.status != http.StatusNotFound || a.problem.Code != "unknown_thread" {
			t.Errorf("unknown thread%s: got %d %s, want %d unknown_thread", path, a.status, a.body, http.StatusNotFound)
		}
	}
}

// TestDeleteThread: deleting a thread first stops its run. Its cursors are then refused for all
// readers, and its ID begins a new thread.
func TestDeleteThread(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	node.answerRuns()
	first := node.postMessage("t", "r1")
	cursor := cursors(first.body)[0]
	var stopped []string
	node.temporal.stop = func(how string) error { stopped = append(stopped, how); return nil }
	node.temporal.closed = func(string) {}
	if a := node.do(http.MethodDelete, "/v1/threads/t", ""); a.status != http.StatusNoContent {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusNoContent, a.body)
	}
	if want := []string{"terminate title", "cancel", "terminate"}; !slices.Equal(stopped, want) { // the stub's workflow does not stop
		t.Errorf("commands to the workflow: got %q, want %q", stopped, want)
	}
	if a := node.do(http.MethodDelete, "/v1/threads/t", ""); a.status != http.StatusNotFound {
		t.Errorf("second delete: status = %v, want %v; body: %s", a.status, http.StatusNotFound, a.body)
	}
	node.awaitList("", "")
	wantGone := func(when string) {
		t.Helper()
		for _, path := range []string{"/v1/threads/t/events", "/v1/threads/t/events?follow=false", eventsOfR1, eventsOfR1 + "?after=" + cursor} {
			header := []string{"Last-Event-ID", cursor}
			if strings.Contains(path, "after") {
				header = nil
			}
			if a := node.do(http.MethodGet, path, "", header...); a.status != http.StatusGone || a.problem.Code != "gone" {
				t.Errorf("%s: GET %s: got %d %s, want %d gone", when, path, a.status, a.body, http.StatusGone)
			}
		}
	}
	wantGone("after the delete")
	if a := node.do(http.MethodGet, eventsOfR1, ""); a.status != http.StatusNotFound {
		t.Errorf("without a cursor: status = %v, want %v; body: %s", a.status, http.StatusNotFound, a.body)
	}
	if a := node.postMessage("t", "r1"); a.status != http.StatusOK || len(node.temporal.starts) != 2 {
		t.Errorf("new run: got %d %s and %d starts, want %d and 2 starts", a.status, a.body, len(node.temporal.starts), http.StatusOK)
	}
	got := node.messages("t")
	wantEqual(t, "messages of the new thread", got, "u-r1 a-r1")
	wantGone("after the new beginning")
}

func TestDeleteEndsActiveRunForReaders(t *testing.T) {
	t.Parallel()
	node := setup(t)
	begun := make(chan stream.Place, 1)
	node.temporal.start = func(in runs.Input) error { begun <- node.begin(in, "e1"); return nil }
	cancelled := ""
	node.temporal.cancel = func(run string) error { cancelled = run; return nil }
	node.temporal.stop = func(string) error { return nil }
	var closed atomic.Bool
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) { // the run's viewer checks it too
		if closed.Load() {
			return 0, serviceerror.NewNotFound("none")
		}
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	shown := make(chan answer, 1)
	node.temporal.closed = func(string) { // the workflow ends its run before it closes, and readers are shown the end before the purge
		p := <-begun
		end := &agui.RunFinished{ThreadID: "t", RunID: "r1", Outcome: &agui.Outcome{Type: agui.OutcomeCancelled}}
		if _, _, err := node.log.Seal(node.ctx(), p, end); err != nil {
			t.Error(err)
		}
		if a := <-shown; !strings.Contains(a.body, `"cancelled"`) {
			t.Errorf("reader: got %s, want a cancelled run", a.body)
		}
		closed.Store(true)
	}
	go func() { shown <- node.postMessage("t", "r1") }()
	p := <-begun
	begun <- p
	if a := node.do(http.MethodDelete, "/v1/threads/t", ""); a.status != http.StatusNoContent || cancelled != "r1" {
		t.Errorf("delete: got %d %s and the cancelled run %q, want %d and r1", a.status, a.body, cancelled, http.StatusNoContent)
	}
}

// TestDeleteEndsSilentReaders: a reader does not wait for a run's end that was purged before the
// reader was shown it.
func TestDeleteEndsSilentReaders(t *testing.T) {
	t.Parallel()
	node := setup(t)
	begun := make(chan stream.Place, 1)
	node.temporal.start = func(in runs.Input) error { begun <- node.begin(in, "e1"); return nil }
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	shown := make(chan answer, 1)
	go func() { shown <- node.postMessage("t", "r1") }()
	p := <-begun
	if err := node.snapshots.Purge(node.ctx(), p.Run.Thread); err != nil {
		t.Fatal(err)
	}
	if a := <-shown; strings.Contains(a.body, "RUN_FINISHED") || strings.Contains(a.body, "RUN_ERROR") {
		t.Errorf("reader: got %s, want no end of the run", a.body)
	}
}

func TestForksByParentRun(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.postMessage("t", "r1")
	node.postMessage("t", "r2")
	named := withForwardedProps(`{"perdure":{"parentThreadId":"t"}}`)
	whole := func(in *agui.RunAgentInput) { // the list of a stock client that knows the parent up to that run
		in.Messages = append([]agui.Message{
			{ID: "u-r1", Role: agui.RoleUser, Content: agui.TextContent("said in r1")},
			{ID: "a-r1", Role: agui.RoleAssistant, Content: agui.TextContent("answer to r1")},
		}, in.Messages...)
	}
	a := node.postMessage("f1", "r3", withParentRun("r1"), named, whole)
	if got := node.messages("f1"); a.status != http.StatusOK || got != "u-r1 a-r1 u-r3 a-r3" || strings.Contains(a.body, "MESSAGES_SNAPSHOT") || !strings.Contains(a.body, `"parentRunId":"r1"`) {
		t.Errorf("input with the whole history: got %s\n%s\nwant the messages of r1 and r3 without a snapshot", got, a.body)
	}
	a = node.postMessage("f2", "r3", withParentRun("r1"), withForwardedProps(`{}`))
	if got := node.messages("f2"); got != "u-r1 a-r1 u-r3 a-r3" || !strings.Contains(a.body, "MESSAGES_SNAPSHOT") {
		t.Errorf("input with the new message, without a parent thread: got %s\n%s\nwant the messages of r1 and r3 with a snapshot", got, a.body)
	}
	again := node.postMessage("f2", "r3", withParentRun("r1"), withForwardedProps(`{}`))
	wantEqual(t, "events of a repeated input", again.body, a.body)
	if a := node.postMessage("f3", "r5", withForwardedProps(`{"perdure":{"parentRunId":"r2","parentThreadId":"t"}}`)); !strings.Contains(a.body, `"parentRunId":"r2"`) || node.messages("f3") != "u-r1 a-r1 u-r2 a-r2 u-r5 a-r5" {
		t.Errorf("parent in the forwarded properties: got %s\n%s\nwant the messages of r1, r2 and r5", node.messages("f3"), a.body)
	}
	node.postMessage("f2", "r4", withParentRun("r2")) // the parent is only recorded, because the thread exists
	if got := node.messages("f2"); got != "u-r1 a-r1 u-r3 a-r3 u-r4 a-r4" {
		t.Errorf("parent of a run in an existing thread: messages = %q, want %q", got, "u-r1 a-r1 u-r3 a-r3 u-r4 a-r4")
	}
	if got := node.messages("t"); got != "u-r1 a-r1 u-r2 a-r2" {
		t.Errorf("parent thread: messages = %q, want %q", got, "u-r1 a-r1 u-r2 a-r2")
	}
	for what, c := range map[string]struct {
		answer
		wantStatus            int
		wantCode, wantPointer string
	}{
		"an unknown run":       {node.postMessage("g", "r", withParentRun("r9")), 422, "unknown_parent", "/forwardedProps/perdure/parentThreadId"},
		"a run of two threads": {node.postMessage("g", "r", withParentRun("r3")), 422, "unknown_parent", "/forwardedProps/perdure/parentThreadId"},
		"not of that thread":   {node.postMessage("g", "r", withParentRun("r9"), named), 404, "unknown_run", ""},
		"two names":            {node.postMessage("g", "r", withParentRun("r1"), withForwardedProps(`{"perdure":{"parentRunId":"r2"}}`)), 400, "invalid_input", "/forwardedProps/perdure/parentRunId"},
		"no name":              {node.postMessage("g", "r", withParentRun("r1"), withForwardedProps(`{"perdure":{"parentThreadId":"\u0000"}}`)), 400, "invalid_input", "/forwardedProps/perdure/parentThreadId"},
	} {
		wantEqual(t, what+": status", c.answer.status, c.wantStatus)
		wantEqual(t, what+": problem code", c.problem.Code, c.wantCode)
		wantEqual(t, what+": problem pointer", c.problem.Pointer, c.wantPointer)
	}
	if a := node.do(http.MethodGet, "/v1/threads/g", ""); a.status != http.StatusNotFound {
		t.Errorf("thread of a refused input: got %s, want 404", a.body)
	}
}

func TestForkFromConsole(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.answerRuns()
	node.postMessage("t", "r1")
	fork := func(path, body string) answer { return node.do(http.MethodPost, path, body) }
	a := fork("/v1/threads/t/runs/r1/fork", "")
	var made struct {
		ThreadID   string
		ForkedFrom struct{ ThreadID, RunID string }
	}
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || a.status != http.StatusCreated || made.ThreadID == "" || made.ForkedFrom.ThreadID != "t" || made.ForkedFrom.RunID != "r1" {
		t.Fatalf("fork: got %d %s, want %d with the parent r1 of t", a.status, a.body, http.StatusCreated)
	}
	if got := node.messages(made.ThreadID); got != "u-r1 a-r1" {
		t.Errorf("fork: messages = %q, want %q", got, "u-r1 a-r1")
	}
	if a := node.do(http.MethodGet, "/v1/threads/"+made.ThreadID, ""); !strings.Contains(a.body, `"forkedFrom":{"threadId":"t","runId":"r1"}`) || !strings.Contains(a.body, `"agent":"a"`) {
		t.Errorf("summary of the fork: got %s, want its parent and its agent", a.body)
	}
	if a := node.do(http.MethodGet, "/v1/threads/"+made.ThreadID+"/events?follow=false", ""); a.status != http.StatusOK || len(cursors(a.body)) != 4 || !strings.Contains(a.body, "MESSAGES_SNAPSHOT") {
		t.Errorf("events of the fork: got %d %s, want %d with a snapshot and 4 cursors", a.status, a.body, http.StatusOK)
	}
	node.postMessage(made.ThreadID, "r2")
	if got := node.messages(made.ThreadID); got != "u-r1 a-r1 u-r2 a-r2" {
		t.Errorf("fork after a run: messages = %q, want %q", got, "u-r1 a-r1 u-r2 a-r2")
	}
	for range 2 {
		if a := fork("/v1/threads/t/runs/r1/fork", `{"threadId":"mine"}`); a.status != http.StatusCreated {
			t.Errorf("fork into a named thread: status = %v, want %v; body: %s", a.status, http.StatusCreated, a.body)
		}
	}
	var ends struct {
		Items []struct{ Cursor, Kind string }
	}
	if a := node.do(http.MethodGet, "/v1/threads/t/runs/r1/forkpoints", ""); json.Unmarshal([]byte(a.body), &ends) != nil || len(ends.Items) != 1 || ends.Items[0].Kind != "end" {
		t.Fatalf("fork points = %s, want the end of the run", a.body)
	}
	if a := fork("/v1/threads/t/runs/r1/fork", `{"threadId":"mine","at":"`+ends.Items[0].Cursor+`"}`); a.status != http.StatusCreated {
		t.Errorf("the same fork at the cursor of the end: got %d %s, want %d", a.status, a.body, http.StatusCreated)
	}
	node.temporal.start = func(in runs.Input) error { node.begin(in, "e"); return nil }
	ctx, cancel := context.WithCancel(node.ctx())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, node.http.URL+"/v1/agents/a/runs", strings.NewReader(encodeInput(t, inputOf("r3", "more"))))
	if err != nil {
		t.Fatal(err)
	}
	node.temporal.closed = func(string) {}
	resp, err := node.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	for what, c := range map[string]struct {
		answer
		wantStatus int
		wantCode   string
		wantDetail string
	}{
		"an existing thread": {fork("/v1/threads/t/runs/r1/fork", `{"threadId":"t"}`), 409, "thread_exists", `the thread "t"`},
		"an unknown run":     {fork("/v1/threads/t/runs/r9/fork", ""), 404, "unknown_run", `"r9"`},
		"an unknown thread":  {fork("/v1/threads/x/runs/r1/fork", ""), 404, "unknown_run", `"x"`},
		"an active run":      {fork("/v1/threads/t/runs/r3/fork", ""), 409, "run_active", `the run "r3"`},
		"no fork point":      {fork("/v1/threads/t/runs/r1/fork", `{"at":"`+node.log.CursorAt(1).String()+`"}`), 422, "not_a_fork_point", ends.Items[0].Cursor},
		"no cursor":          {fork("/v1/threads/t/runs/r1/fork", `{"at":"x"}`), 400, "invalid_cursor", ""},
		"points of no run":   {node.do(http.MethodGet, "/v1/threads/t/runs/r9/forkpoints", ""), 404, "unknown_run", `"r9"`},
		"no name":            {fork("/v1/threads/t/runs/r1/fork", `{"threadId":"\u0007"}`), 400, "invalid_input", ""},
		"no body":            {fork("/v1/threads/t/runs/r1/fork", `[]`), 400, "invalid_input", ""},
	} {
		wantEqual(t, what+": status", c.answer.status, c.wantStatus)
		wantEqual(t, what+": problem code", c.problem.Code, c.wantCode)
		if !strings.Contains(c.problem.Detail, c.wantDetail) {
			t.Errorf("%s: problem detail = %q, want text with %q", what, c.problem.Detail, c.wantDetail)
		}
	}
}

// TestPauseBeforeFirstRecord: a run may be paused before its first record is in the log.
func TestPauseBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	place := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r1"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
	node.temporal.pause = func(string) error { return nil }
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	if _, err := node.log.ProposeFirstInput(node.ctx(), place.Run, [32]byte{1}, &stream.Input{}); err != nil {
		t.Fatal(err)
	}
	paused := make(chan int, 1)
	go func() { paused <- node.do(http.MethodPost, "/v1/threads/t/pause", "").status }()
	select {
	case status := <-paused:
		t.Fatalf("pause before the run begins: got %d", status)
	case <-time.After(100 * time.Millisecond):
	}
	opening := stream.Opening{RunID: "r1", Execution: "e1", Agent: "a", Continues: "r0"}
	if _, err := node.snapshots.OpenRun(node.ctx(), place, opening); err != nil {
		t.Fatal(err)
	}
	if status := <-paused; status != http.StatusNoContent {
		t.Errorf("pause: status = %v, want %v", status, http.StatusNoContent)
	}
	a := node.do(http.MethodGet, "/v1/threads/t", "")
	if !strings.Contains(a.body, `"status":"paused"`) {
		t.Errorf("thread = %q, want text with %q", a.body, `"status":"paused"`)
	}
}

// TestPausedThread: a paused run is paused in the summary and in the list of
// threads, until it continues or ends.
func TestPausedThread(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t))
	place := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r1"}, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
	opening := stream.Opening{RunID: "r1", Execution: "e1", Agent: "a", Continues: "r0"}
	if _, err := node.snapshots.OpenRun(node.ctx(), place, opening, &agui.RunStarted{ThreadID: "t", RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	node.temporal.pause = func(string) error { return nil }
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	shows := func(want string) {
		t.Helper()
		if a := node.do(http.MethodGet, "/v1/threads/t", ""); !strings.Contains(a.body, `"status":"`+want+`"`) {
			t.Errorf("thread: got %s, want %s", a.body, want)
		}
		ctx, cancel := context.WithTimeout(node.ctx(), time.Minute)
		defer cancel()
		for ctx.Err() == nil { // the list receives changes from NATS
			a := node.do(http.MethodGet, "/v1/threads?status="+want, "")
			if strings.Contains(a.body, `"threadId":"t"`) && strings.Contains(a.body, `"status":"`+want+`"`) {
				return
			}
		}
		t.Errorf("no thread with the status %s in the list", want)
	}
	shows("running")
	for _, step := range []struct{ command, wantStatus string }{{"pause", "paused"}, {"pause", "paused"}, {"resume", "running"}, {"pause", "paused"}} {
		if a := node.do(http.MethodPost, "/v1/threads/t/"+step.command, ""); a.status != http.StatusNoContent {
			t.Fatalf("%s: status = %v, want %v; body: %s", step.command, a.status, http.StatusNoContent, a.body)
		}
		shows(step.wantStatus)
	}
	node.end(place)
	shows("idle")
	if a := node.do(http.MethodPost, "/v1/threads/t/pause", ""); a.status != http.StatusNoContent {
		t.Fatalf("status = %v, want %v; body: %s", a.status, http.StatusNoContent, a.body)
	}
	shows("idle")
}
