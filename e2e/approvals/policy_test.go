package approvals

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/approvals/inbox"
	"github.com/perdure/perdure/runs"
)

const panel = "/v1/agents/panel/runs"

// askPanel runs an agent that asks about calculations, and returns the input and the interrupts.
func askPanel(t *testing.T, p *kit.Endpoint, prompt string) (kit.Input, []kit.Interrupt) {
	t.Helper()
	in := kit.NewInput(prompt)
	asked := p.FollowAgent(t, panel, in)
	asked.Finish(t)
	return in, kit.InterruptsOf(t, asked.Events)
}

// vote approves a call as an API does that has authenticated the approver.
func vote(t *testing.T, p *kit.Endpoint, in kit.Input, callID, by string) runs.DecisionResult {
	t.Helper()
	return decideAs(t, p, in, runs.Decision{CallID: callID, Kind: runs.DecisionApprove, Digest: by, By: by})
}

// decideAs sends a decision to the workflow as an API does that has authenticated the approver.
func decideAs(t *testing.T, p *kit.Endpoint, in kit.Input, d runs.Decision) runs.DecisionResult {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	handle, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: "thread/default/" + in.ThreadID, UpdateName: runs.UpdateDecide, WaitForStage: client.WorkflowUpdateStageCompleted,
		Args: []any{runs.DecideRequest{Decisions: []runs.Decision{d}}},
	})
	var taken runs.DecideResult
	if err == nil {
		err = handle.Get(t.Context(), &taken)
	}
	if err != nil || len(taken.Results) != 1 {
		t.Fatalf("vote of %s = %v, %v, want one result", d.By, taken, err)
	}
	return taken.Results[0]
}

// TestQuorum: an approval needs two people. The first vote is kept while the thread is parked and
// the process is killed, whatever its channel, and no person votes twice.
func TestQuorum(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	in, questions := askPanel(t, p.Endpoint, prompt)
	then := in
	then.RunID, then.Resume = "run-2", []any{map[string]any{"interruptId": questions[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	for range 2 {
		resp, err := p.Post(t.Context(), panel, then)
		if refusal := kit.ReadProblem(t, resp, err); refusal.Code != "interrupted" || !strings.Contains(refusal.Detail, "are counted") {
			t.Errorf("refusal of an input with one of two votes = %+v, want interrupted, with the counted votes", refusal)
		}
	}
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	p.Kill()
	p.Start(t)
	for range 2 {
		status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`)
		if status != http.StatusOK || answer["repeated"] != true || answer["missing"] != 1.0 {
			t.Errorf("approve again: got %d %v, want %d as a repeat with one missing vote", status, answer, http.StatusOK)
		}
	}
	// A vote for an edit and a vote for the model's arguments are no quorum.
	status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"edit","args":{"expression":"7+70"}}`)
	if status != http.StatusOK || answer["missing"] != 1.0 || answer["repeated"] != nil {
		t.Errorf("changed vote: got %d %v, want %d as new with one missing vote", status, answer, http.StatusOK)
	}
	split := vote(t, p.Endpoint, in, questions[0].ToolCallID, "bob")
	if len(split.Tallies) != 2 || split.Missing != 1 || split.Tallies[0].Votes != 1 || split.Tallies[1].Votes != 1 {
		t.Errorf("votes for different arguments = %+v, want two tallies of one vote", split)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 1 {
		t.Errorf("number of model calls = %d, want 1", n)
	}
	if status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["missing"] != nil {
		t.Errorf("deciding vote: got %d %v, want %d without missing votes", status, answer, http.StatusOK)
	}
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{"14"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"14"})
	}
	// The thread has continued. The first vote is still known.
	if status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["repeated"] != true {
		t.Errorf("approve at the end: got %d %v, want %d as a repeat", status, answer, http.StatusOK)
	}
	notices := noticesOf(t, p.Endpoint, in)
	if n := len(notices); n < 3 || n > 5 || notices[0].Event != runs.EventOpened || notices[1].Event != runs.EventVoted || notices[n-1].Event != runs.EventDecided { // one notification may have several votes
		t.Errorf("notifications = %+v, want opened, voted and decided", notices)
	}
	for i, n := range notices {
		if n.Number != i+1 {
			t.Errorf("number of notification %d = %d, want %d", i, n.Number, i+1)
		}
	}
}

// TestVotesAreRecordedAsCast: the audit and the inbox show each vote at once to a reader with the
// cursor of its answer, also the vote of an approver who returns to an earlier one. An input whose
// vote is refused counts nothing.
func TestVotesAreRecordedAsCast(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	in, questions := askPanel(t, kit.Shared.Endpoint, prompt)
	id := questions[0].ID
	var before time.Time
	for i, decision := range []string{`{"decision":"approve"}`, `{"decision":"edit","args":{"expression":"7+70"}}`, `{"decision":"approve"}`} {
		status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, id, decision)
		cursor, _ := answer["cursor"].(string)
		if status != http.StatusOK || answer["missing"] != 1.0 || answer["repeated"] != nil || cursor == "" {
			t.Fatalf("vote %d: got %d %v, want %d as new with one missing vote", i, status, answer, http.StatusOK)
		}
		for _, path := range []string{"/v1/threads/" + in.ThreadID + "/approvals?waitFor=" + cursor, "/v1/approvals?thread=" + in.ThreadID + "&waitFor=" + cursor} {
			cast := decisionsOf(t, path, id)
			if len(cast) != 1 || !strings.Contains(decision, cast[0].Decision) || !cast[0].At.After(before) {
				t.Errorf("%s after vote %d: %+v, want the vote %s after %s", path, i, cast, decision, before)
			}
		}
		before = decisionsOf(t, "/v1/threads/"+in.ThreadID+"/approvals", id)[0].At
	}

	decideAs(t, kit.Shared.Endpoint, in, runs.Decision{CallID: questions[0].ToolCallID, Kind: runs.DecisionEdit, ArgsDigest: "other", Digest: "bob", By: "bob"})
	then := in
	then.RunID, then.Resume = "run-2", []any{map[string]any{
		"interruptId": id, "status": "resolved", "payload": map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "7+70"}},
	}}
	resp, err := kit.Shared.Post(t.Context(), panel, then)
	if refusal := kit.ReadProblem(t, resp, err); refusal.Status != http.StatusConflict || refusal.Code != runs.ErrorOtherEdit || refusal.Counted || refusal.Pointer != "/resume/0/payload" {
		t.Errorf("refusal of a vote for other arguments = %+v, want %s", refusal, runs.ErrorOtherEdit)
	}

	status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, id, `{"decision":"reject","reason":"no"}`)
	if status != http.StatusOK {
		t.Fatalf("reject: got %d %v, want %d", status, answer, http.StatusOK)
	}
	waitFor := "&waitFor=" + answer["cursor"].(string)
	for _, path := range []string{"/v1/approvals?status=decided&thread=" + in.ThreadID, "/v1/threads/" + in.ThreadID + "/approvals?status=decided"} {
		if got := decisionsOf(t, path+waitFor, id); len(got) == 0 || got[len(got)-1].Reason != "no" {
			t.Errorf("%s: decisions %+v, want the rejection at their end", path, got)
		}
	}
	if open := decisionsOf(t, "/v1/approvals?thread="+in.ThreadID+waitFor, id); open != nil {
		t.Errorf("decisions of the inbox = %+v, want no open interrupt", open)
	}
}

// decisionsOf returns the decisions of an interrupt in a list of approvals; nil = the list does not
// have the interrupt.
func decisionsOf(t *testing.T, path, id string) []inbox.Decision {
	t.Helper()
	var page struct{ Items []inbox.Approval }
	kit.Shared.GetJSON(t, path, &page)
	for _, a := range page.Items {
		if a.ID == id {
			return a.Decisions
		}
	}
	return nil
}

// TestRemember: an approval with remember covers waiting and later calls of the tool on the thread,
// also over a kill. A changed rule asks again.
func TestRemember(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "9+9", "9+1")
	in, questions := askPanel(t, p.Endpoint, prompt)
	for body, want := range map[string]int{`{"decision":"reject","remember":true}`: 422, `{"decision":"edit","args":{},"remember":true}`: 422} {
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, body); status != want || answer["pointer"] != "/remember" {
			t.Errorf("%s: got %d %v, want %d at /remember", body, status, answer, want)
		}
	}
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve","remember":"tool"}`); status != http.StatusOK {
		t.Errorf("approve: got %d %v, want %d", status, answer, http.StatusOK)
	}
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	results := kit.ToolResultsSent(t, prompt)
	slices.Sort(results)
	if !slices.Equal(results, []string{"10", "18"}) {
		t.Errorf("results sent to the model = %q, want %q", results, []string{"10", "18"})
	}
	p.Kill()
	p.Start(t)
	second, stated := kit.Marked("Once more."), kit.Marked("Here.")
	kit.ScriptCalculations(t, second, stated, "9+2")
	next := in.NextRun("run-2", "reject", kit.UserMessage(second))
	again := p.FollowAgent(t, panel, next)
	again.Finish(t)
	if last := again.Events[len(again.Events)-1]; kit.Outcome(last) != "success" {
		t.Errorf("end of the next run = %s, want success", last.Data)
	}
	definition, err := os.ReadFile("testdata/agents/panel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Publish(t, "panel", strings.Replace(string(definition), `contains("9")`, `contains("9") || false`, 1))
	third := kit.Marked("And again.")
	kit.ScriptCalculations(t, third, stated, "9+3")
	last := next.NextRun("run-3", "reject", kit.UserMessage(third))
	asked := p.FollowAgent(t, panel, last)
	asked.Finish(t)
	last.RunID, last.Resume = "run-4", []any{map[string]any{"interruptId": kit.InterruptsOf(t, asked.Events)[0].ID, "status": "cancelled"}}
	p.FollowAgent(t, panel, last).Finish(t)
}

// TestRemindersAndEscalation: while no person decides, the approvers are reminded, then the request
// is escalated, and finally it expires, also over kills. A decision by another person is refused.
func TestRemindersAndEscalation(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "8+8")
	in, questions := askPanel(t, p.Endpoint, prompt)
	for body, code := range map[string]string{`{"decision":"approve"}`: "not_an_approver", `{"decision":"reject"}`: "not_an_approver"} {
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, body); status != http.StatusForbidden || answer["code"] != code {
			t.Errorf("%s: got %d %v, want %d %s", body, status, answer, http.StatusForbidden, code)
		}
	}
	then := in
	then.RunID, then.Resume = "run-2", []any{map[string]any{"interruptId": questions[0].ID, "status": "cancelled"}}
	resp, err := p.Post(t.Context(), panel, then)
	if refusal := kit.ReadProblem(t, resp, err); refusal.Status != http.StatusForbidden || refusal.Code != "not_an_approver" {
		t.Errorf("refusal of an answer with an input = %+v, want not_an_approver", refusal)
	}
	kit.AwaitWorkflowType(t, p.Endpoint, in, runs.TypeParked)
	awaitNotice(t, p.Endpoint, in, runs.EventReminded)
	awaitNotice(t, p.Endpoint, in, runs.EventEscalated)
	p.Kill()
	p.Start(t)
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	if got := kit.ToolResultsSent(t, prompt); len(got) != 1 || !strings.HasPrefix(got[0], "The approval of this call expired") {
		t.Errorf("results sent to the model = %q, want one expired approval", got)
	}
	notices := noticesOf(t, p.Endpoint, in)
	if n := len(notices); n < 4 || notices[0].Event != runs.EventOpened || notices[n-1].Event != runs.EventExpired {
		t.Errorf("notifications = %v, want opened first and expired last", notices)
	}
	if last := notices[len(notices)-1]; last.Items[0].Escalations != 2 {
		t.Errorf("expired interrupt = %+v, want 2 escalations", last.Items[0])
	}
}

// awaitNotice waits until the thread's workflow has scheduled a notification of an event.
func awaitNotice(t *testing.T, p *kit.Endpoint, in kit.Input, event runs.NotificationEvent) {
	t.Helper()
	for !slices.ContainsFunc(noticesOf(t, p, in), func(n runs.Notification) bool { return n.Event == event }) {
		select {
		case <-t.Context().Done():
			t.Fatalf("there was no notice of %s", event)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// noticesOf returns the notifications about a thread, each once, as its workflow scheduled them.
func noticesOf(t *testing.T, p *kit.Endpoint, in kit.Input) []runs.Notification {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var notices []runs.Notification
	for execution := ""; ; {
		history, err := kit.FetchHistory(t.Context(), c, "thread/default/"+in.ThreadID, execution)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range slices.Backward(history.GetEvents()) {
			scheduled := e.GetActivityTaskScheduledEventAttributes()
			if scheduled.GetActivityType().GetName() != runs.ActivityNotify {
				continue
			}
			var n runs.Notification
			if err := json.Unmarshal(scheduled.GetInput().GetPayloads()[0].GetData(), &n); err != nil {
				t.Fatal(err)
			}
			if len(notices) == 0 || notices[len(notices)-1].Number != n.Number {
				notices = append(notices, n)
			}
		}
		execution = history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId()
		if execution == "" {
			slices.Reverse(notices)
			return notices
		}
	}
}
