package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// inputWithResume returns an input that resolves an interrupt, so that it may reuse the ID of an
// earlier run.
func inputWithResume(run, message string) agui.RunAgentInput {
	in := inputOf(run, message)
	in.Messages[0].ID = "u-" + message
	in.Resume = []agui.ResumeEntry{{InterruptID: "int", Status: agui.ResumeResolved, Payload: json.RawMessage(`{}`)}}
	return in
}

// TestSegmentsAreHidden: a run that was resumed under its own ID has segments. Every answer of
// the API names the run by the ID that its client knows.
func TestSegmentsAreHidden(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.temporal.closed = func(string) {}
	node.post(inputOf("r1", "hello"))
	started := make(chan runs.Input, 1)
	node.temporal.start = func(in runs.Input) error { node.begin(in, "e2"); started <- in; return nil }
	first := node.dial()
	first.send(runFrame("1", inputWithResume("r1", "again")))
	first.want("ack", "1")
	second := (<-started).Run.ID
	if second != (stream.Run{ID: "r1"}).Segment(2).ID {
		t.Fatalf("started run: got %q, want a second segment", second)
	}
	node.temporal.start = func(runs.Input) error { return alreadyStarted("e2") }

	c := node.dial()
	refuse := func(code string, in agui.RunAgentInput) {
		t.Helper()
		if a := node.post(in); a.problem.Code != code || a.problem.ActiveRun != "r1" {
			t.Errorf("HTTP: got %d %s, want %s with the active run r1", a.status, a.body, code)
		} else if c.send(runFrame("1", in)); true {
			if f := c.want("error", "1"); f.Code != code || f.ActiveRun != "r1" || f.Counted != a.problem.Counted {
				t.Errorf("WebSocket: got %+v, want %s with the active run r1", f, code)
			}
		}
	}
	next := inputOf("r2", "me too")
	for code, kind := range map[string]string{"busy": runs.ErrorBusy, "interrupted": runs.ErrorInterrupted, "missing_tool_results": runs.ErrorMissingResults} {
		node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) {
			return runs.SubmitResult{}, temporal.NewApplicationError("", kind, runs.ActiveRun{RunID: second})
		}
		refuse(code, next)
	}
	node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{Open: true}, nil }
	refuse("interrupted", next)
	if a := node.post(next); !a.problem.Counted {
		t.Errorf("vote of a refused run: got %s, want it counted", a.body)
	}

	node.temporal.submit = busyWith(second)
	node.temporal.steer = func(in runs.SteerRequest) (runs.SteerResult, error) {
		if in.RunID != second {
			t.Errorf("run of the steering update = %s, want %s", in.RunID, second)
		}
		return runs.SteerResult{}, nil
	}
	var steered struct {
		RunID string `json:"runId"`
	}
	for _, a := range []answer{
		node.post(inputWithProps(next, `{"onBusy":"steer"}`)),
		node.do(http.MethodPost, "/v1/threads/t/messages", `{"message":{"id":"s1","role":"user","content":"Wait!"}}`),
	} {
		err := json.Unmarshal([]byte(a.body), &steered)
		if err != nil {
			t.Fatal(err)
		}
		a.wantStatus(t, "steering", http.StatusAccepted)
		wantEqual(t, "run of the steering update", steered.RunID, "r1")
	}
	for _, frame := range []any{
		runFrame("1", inputWithProps(next, `{"onBusy":"steer"}`)),
		`{"type":"steer","id":"1","threadId":"t","message":{"id":"s1","role":"user","content":"Wait!"}}`,
	} {
		c.send(frame)
		if f := c.want("ack", "1"); f.RunID != "r1" {
			t.Errorf("steering: run of the frame = %q, want %q", f.RunID, "r1")
		}
		c.want("end", "1")
	}
	edit := inputOf("r3", "other words")
	edit.Messages[0].ID = "u-again"
	edit.ForwardedProps = json.RawMessage(`{"perdure":{"onBusy":"steer"}}`)
	refuse("busy", edit)

	if a := node.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", ""); a.problem.Code != "run_active" || a.problem.ActiveRun != "r1" {
		t.Errorf("fork of an active run: got %d %s, want run_active with the active run r1", a.status, a.body)
	}
	// n.do checks that no answer has the mark of a segment.
	for _, path := range []string{"", "/runs", "/messages", "/events?follow=false", "/superseded"} {
		node.do(http.MethodGet, "/v1/threads/t"+path, "", "Accept", "application/json")
	}
	node.do(http.MethodGet, "/v1/threads", "")
	node.end(stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: second}, Lane: stream.LaneMain, Step: "1/model", Execution: "e2"})
	first.until("1", "end")
	if a := node.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", `{"threadId":"fork"}`); a.status != http.StatusCreated {
		t.Errorf("fork: status = %v, want %v; body: %s", a.status, http.StatusCreated, a.body)
	}
	node.do(http.MethodGet, "/v1/threads/fork", "")
	node.do(http.MethodGet, "/v1/threads/fork/events?follow=false", "")
}

// TestSocketShowsAllSegments: a subscription shows the segments of a run as GET events does,
// from every cursor.
func TestSocketShowsAllSegments(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.temporal.closed = func(string) {}
	bodies := []string{node.post(inputOf("r1", "hello")).body}
	for _, message := range []string{"again", "once more"} {
		bodies = append(bodies, node.post(inputWithResume("r1", message)).body)
	}
	if len(node.temporal.starts) != 3 {
		t.Fatalf("started runs: got %d, want 3", len(node.temporal.starts))
	}
	c := node.dial()
	compare := func(what, query string, frame map[string]any) {
		t.Helper()
		sse := sseLines(node.do(http.MethodGet, "/v1/threads/t/runs/r1/events?"+query, "").body)
		c.send(frame)
		var lines []string
		if len(sse) == 0 {
			c.want("end", "1")
		} else {
			if f := c.want("ack", "1"); f.RunID != "r1" {
				t.Errorf("%s: acknowledgement: got %+v, want the run r1", what, f)
			}
			_, lines = c.until("1", "end")
		}
		if diff := cmp.Diff(sse, lines); diff != "" {
			t.Errorf("%s (-SSE +WebSocket):\n%s", what, diff)
		}
	}
	compare("from the start", "", subscribeFrame("1", "r1", ""))
	for segment, body := range bodies {
		for i, cursor := range cursors(body) {
			compare(fmt.Sprintf("after event %d of segment %d", i, segment+1), "after="+cursor, subscribeFrame("1", "r1", cursor))
		}
	}
	joining := subscribeFrame("1", "r1", "")
	joining["join"] = true
	c.send(joining)
	c.want("ack", "1")
	_, lines := c.until("1", "end")
	want := cursors(node.do(http.MethodGet, "/v1/threads/t/runs/r1/events?join=true", "").body)
	if got := cursors(strings.Join(lines, "\n")); got[len(got)-1] != want[len(want)-1] {
		t.Errorf("last cursor of a join: got %s, want %s", got[len(got)-1], want[len(want)-1])
	}
	c.send(subscribeFrame("1", "r1", stream.Cursor{Position: stream.Position{Seq: 1 << 40}, Generation: stream.Generation1, Epoch: node.log.Epoch()}.String()))
	if f := c.want("error", "1"); f.Code != "invalid_cursor" {
		t.Errorf("cursor of no segment: code = %q, want %q", f.Code, "invalid_cursor")
	}
}
