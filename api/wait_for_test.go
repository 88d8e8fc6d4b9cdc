package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// continueThread writes the beginning of the run that continues a thread after a decision, as its
// activity would.
func (f *inboxFixture) continueThread(thread string) stream.Place {
	f.t.Helper()
	p := stream.Place{Run: stream.Run{Thread: stream.Thread{Tenant: "default", ID: thread}, ID: "next"}, Lane: stream.LaneMain, Step: "0/tools", Execution: "e2"}
	seq, err := f.log.OpenStep(f.ctx(), p, stream.Opening{RunID: "next", Execution: "e2", Continues: "r", ProtocolVersion: "1.0"}, &agui.RunStarted{ThreadID: thread, RunID: "next"})
	if err != nil {
		f.t.Error(err)
	}
	p.After = seq
	return p
}

// approve approves a call and returns the cursor of the acknowledgement.
func (f *inboxFixture) approve(thread, id string) string {
	f.t.Helper()
	a := f.do(http.MethodPost, "/v1/threads/"+thread+"/approvals/"+id, `{"decision":"approve"}`)
	var answer struct{ Cursor string }
	err := json.Unmarshal([]byte(a.body), &answer)
	if err != nil {
		f.t.Fatal(err)
	}
	a.mustStatus(f.t, "status", http.StatusOK)
	if answer.Cursor == "" {
		f.t.Error("cursor of the acknowledgement is empty, want a value")
	}
	return answer.Cursor
}

// TestWaitForShowsAcknowledgedDecisions: a reader with the cursor of an acknowledged decision in
// waitFor is not shown the interrupt again, however long the decision's effect takes.
func TestWaitForShowsAcknowledgedDecisions(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	for i := range 10 {
		thread := fmt.Sprint("t", i)
		ids := fixture.openApprovals(thread, "c1")
		cursor := fixture.approve(thread, ids[0])
		if again := fixture.approve(thread, ids[0]); again != cursor {
			t.Errorf("cursor of the repeated decision: got %s, want %s", again, cursor)
		}
		shown := make(chan answer, 3)
		for _, path := range []string{"events?follow=false&waitFor=" + cursor, "events?waitFor=" + cursor} {
			go func() {
				shown <- fixture.do(http.MethodGet, "/v1/threads/"+thread+"/"+path, "", "Accept", "application/json")
			}()
		}
		socket := fixture.dial()
		socket.send(map[string]any{"type": "subscribe", "id": "1", "threadId": thread, "follow": false, "waitFor": cursor})
		place := fixture.continueThread(thread)
		for range 2 {
			a := <-shown
			a.mustStatus(t, "status", http.StatusOK)
			if strings.Contains(a.body, ids[0]) {
				t.Errorf("body = %q, want no %q", a.body, ids[0])
			}
			if !strings.Contains(a.body, `"next"`) {
				t.Errorf("body = %q, want text with %q", a.body, `"next"`)
			}
		}
		socket.want("ack", "1")
		fixture.end(place)
		_, events := socket.until("1", "end")
		if strings.Contains(strings.Join(events, ""), ids[0]) {
			t.Errorf("events = %q, want no %q", strings.Join(events, ""), ids[0])
		}
	}
}

// TestWaitForDecisionInThread: waitFor works for the summary, the messages and the state of a
// thread too.
func TestWaitForDecisionInThread(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	for i, path := range []string{"?waitFor=", "/messages?waitFor=", "/state?waitFor="} {
		thread := fmt.Sprint("t", i)
		cursor := fixture.approve(thread, fixture.openApprovals(thread, "c1")[0])
		shown := make(chan answer, 1)
		go func() { shown <- fixture.do(http.MethodGet, "/v1/threads/"+thread+path+cursor, "") }()
		select {
		case a := <-shown:
			t.Errorf("GET …%s answers before the thread continues: got %d %s", path, a.status, a.body)
		case <-time.After(100 * time.Millisecond):
			fixture.continueThread(thread)
			if a := <-shown; a.status != http.StatusOK || strings.Contains(a.body, `"waiting"`) {
				t.Errorf("GET …%s: got %d %s, want %d without open interrupts", path, a.status, a.body, http.StatusOK)
			}
		}
		if a := fixture.do(http.MethodGet, "/v1/threads/"+thread+path+"x", ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" {
			t.Errorf("GET …%sx: got %d %s, want %d invalid_cursor", path, a.status, a.body, http.StatusBadRequest)
		}
	}
}

// TestWaitForPartialDecision: while other calls are open the thread does not
// continue, and the API does not wait.
func TestWaitForPartialDecision(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t", "c1", "c2")
	cursor := fixture.approve("t", ids[0])
	begun := time.Now()
	a := fixture.do(http.MethodGet, "/v1/threads/t/events?follow=false&waitFor="+cursor, "")
	a.mustStatus(t, "status", http.StatusOK)
	if !strings.Contains(a.body, ids[1]) {
		t.Errorf("body = %q, want text with %q", a.body, ids[1])
	}
	took := time.Since(begun)
	if took > 4*time.Second {
		t.Errorf("read took %v, want at most %v", took, 4*time.Second)
	}
}

// TestInputWaitsForDecision: an input with waitFor is accepted after the decision has taken
// effect. Its resume is then late, and the run is queued.
func TestInputWaitsForDecision(t *testing.T) {
	t.Parallel()
	fixture := setupInbox(t)
	ids := fixture.openApprovals("t", "c1")
	cursor := fixture.approve("t", ids[0])
	fixture.temporal.start = func(runs.Input) error { return alreadyStarted("e2") }
	offered := make(chan runs.SubmitRequest, 1)
	fixture.temporal.submit = func(_ string, in runs.SubmitRequest) (runs.SubmitResult, error) {
		offered <- in
		return runs.SubmitResult{Queued: true}, nil
	}
	in := inputOf("r2", "")
	in.Messages = nil
	in.Resume = []agui.ResumeEntry{{InterruptID: ids[0], Status: agui.ResumeResolved, Payload: json.RawMessage(`{"approved":true}`)}}
	watching := make(chan *frameReader, 1)
	go func() { watching <- fixture.watchRun(in, "waitFor="+cursor) }()
	place := fixture.continueThread("t")
	w := <-watching
	submitted := <-offered
	wantEqual(t, "busy policy of the submission", submitted.OnBusy, runs.OnBusyEnqueue)
	wantEqual(t, "submission has only answers", submitted.Offer.AnswersOnly, true)
	wantEqual(t, "number of decisions of the submission", len(submitted.Decisions), 0)
	fixture.end(place)
	fixture.end(fixture.begin(*submitted.Offer, "e2"))
	w.until("RUN_FINISHED")
}

func TestUnusableWaitForCursors(t *testing.T) {
	t.Parallel()
	o := setupInbox(t)
	ids := o.openApprovals("t", "c1")
	foreign := setupInbox(t)
	elsewhere := foreign.approve("t", foreign.openApprovals("t", "c1")[0])
	other := o.approve("u", o.openApprovals("u", "c1")[0])
	for _, cursor := range []string{elsewhere, other} { // of another log, of another thread
		if a := o.do(http.MethodGet, "/v1/threads/t/events?follow=false&waitFor="+cursor, ""); a.status != http.StatusOK || !strings.Contains(a.body, ids[0]) {
			t.Errorf("cursor of another log or thread: got %d %s, want %d with the decision", a.status, a.body, http.StatusOK)
		}
	}
	if a := o.do(http.MethodGet, "/v1/threads/t/events?waitFor=x", ""); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" {
		t.Errorf("invalid cursor of a read: got %d %s, want %d invalid_cursor", a.status, a.body, http.StatusBadRequest)
	}
	body, err := json.Marshal(inputOf("r2", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	if a := o.do(http.MethodPost, "/v1/agents/a/runs?waitFor=x", string(body)); a.status != http.StatusBadRequest || a.problem.Code != "invalid_cursor" {
		t.Errorf("invalid cursor of a run: got %d %s, want %d invalid_cursor", a.status, a.body, http.StatusBadRequest)
	}
	socket := o.dial()
	socket.send(map[string]any{"type": "run", "id": "1", "agent": "a", "input": inputOf("r2", "hello"), "waitFor": "x"})
	f := socket.want("error", "1")
	wantEqual(t, "code of the frame", f.Code, "invalid_cursor")
	wantEqual(t, "pointer of the frame", f.Pointer, "/waitFor")
}
