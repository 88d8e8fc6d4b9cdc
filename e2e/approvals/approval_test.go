package approvals

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestApproval: stock clients of both generations approve, edit, reject and answer tool calls, and
// see the results. A call that needs no approval runs meanwhile.
func TestApproval(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload map[string]any
		want    string // in the result
	}{
		"approved": {map[string]any{"approved": true}, "14"},
		"edited":   {map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "100+1"}}, "101"},
		"refused":  {map[string]any{"approved": false, "reason": "too dear"}, `The approver rejected this call. It was not made. Reason: "too dear"`},
		"answered": {map[string]any{"approved": false, "content": "fourteen"}, "fourteen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
				kit.ScriptCalculations(t, prompt, done, "7+7", "1+1")
				d := g.Drive(t, kit.Shared, kit.Script{
					URL: kit.Shared.URL(kit.CarefulPath), Messages: []kit.Message{kit.UserMessage(prompt)},
					Runs: []kit.ScriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: tt.payload}},
				})
				ends := d.Finish(t)
				if n := len(ends[0].Messages); n != 3 || ends[0].Messages[2].Content != "2" {
					t.Fatalf("messages of the client at the interrupt = %+v, want 3 with the result 2", ends[0].Messages)
				}
				last := ends[1].Messages
				if n := len(last); n != 5 || last[n-1].Content != done {
					t.Errorf("messages of the client at the end = %+v, want 5 with the answer last", last)
				}
				if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{"2", tt.want}) && !slices.Equal(got, []string{tt.want, "2"}) {
					t.Errorf("results sent to the model = %q, want 2 and %q", got, tt.want)
				}
			})
		})
	}
}

// TestQuestionsStayOpen: an input that does not answer an interrupt does not give it up. An invalid
// answer is refused and has no effect.
func TestQuestionsStayOpen(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7", "7+0")
	first := kit.NewInput(prompt)
	asked := kit.Shared.FollowAgent(t, kit.CarefulPath, first)
	asked.Finish(t)
	questions := kit.InterruptsOf(t, asked.Events)
	if len(questions) != 2 || questions[0].Reason != "tool_call" || questions[0].ToolCallID == "" || questions[0].ID == questions[1].ID {
		t.Fatalf("interrupts = %+v, want two of tool calls", questions)
	}
	entry := func(id, status string, payload any) map[string]any {
		return map[string]any{"interruptId": id, "status": status, "payload": payload}
	}
	yes := map[string]any{"approved": true}
	try := func(code string, status int, resume ...any) {
		t.Helper()
		in := first
		in.RunID, in.Resume = "run-2", resume
		resp, err := kit.Shared.Post(t.Context(), kit.CarefulPath, in)
		if p := kit.ReadProblem(t, resp, err); p.Code != code || p.Status != status {
			t.Errorf("refused with %d %s, want %d %s", p.Status, p.Code, status, code)
		}
	}
	try("interrupted", http.StatusConflict)
	try("interrupted", http.StatusConflict, entry(questions[0].ID, "resolved", yes))
	try("interrupted", http.StatusConflict, entry("nonsense", "resolved", yes))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", "yes"), entry(questions[1].ID, "resolved", yes))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", map[string]any{"approved": true, "editedArgs": 1}))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", yes), entry(questions[0].ID, "resolved", yes))
	said := first.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("Well?")))
	resp, err := kit.Shared.Post(t.Context(), kit.CarefulPath, said)
	if p := kit.ReadProblem(t, resp, err); p.Code != "interrupted" {
		t.Errorf("refusal of a new input = %+v, want interrupted", p)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 1 {
		t.Errorf("number of model calls = %d, want 1", n)
	}
	then := first
	then.RunID, then.Resume = "run-2", []any{entry(questions[0].ID, "cancelled", nil), entry(questions[1].ID, "resolved", yes)}
	delete(then.Resume[0].(map[string]any), "payload")
	f := kit.Shared.FollowAgent(t, kit.CarefulPath, then)
	f.Finish(t)
	results := kit.ToolResultsSent(t, prompt)
	slices.Sort(results)
	if len(results) != 2 || results[0] != "7" || !strings.HasPrefix(results[1], "The approval of this call was cancelled") {
		t.Errorf("results sent to the model = %q, want 7 and a cancelled approval", results)
	}
	kit.WantSameEvents(t, "the same answer again", f.Events, kit.Shared.RunAgent(t, kit.CarefulPath, then))
}

// TestApprovalWithoutItsClient: decisions arrive over REST while no client is connected, and the
// process is killed between interrupt and decision. The thread continues, and clients that follow
// it see that.
func TestApprovalWithoutItsClient(t *testing.T) {
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.InspectAtEnd(t)
	p.Start(t)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7", "7+1")
	in := kit.NewInput(prompt)
	asked := p.FollowAgent(t, kit.CarefulPath, in)
	asked.Finish(t)
	questions := kit.InterruptsOf(t, asked.Events)
	kit.AwaitWorkflowType(t, p.Endpoint, in, "thread.parked.v1")
	p.Kill()
	p.Start(t)
	status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`)
	if status != http.StatusOK || answer["decision"] != "approve" || answer["repeated"] != nil {
		t.Errorf("approve: got %d %v, want %d as a new decision", status, answer, http.StatusOK)
	}
	if status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["repeated"] != true {
		t.Errorf("approve again: got %d %v, want %d as a repeat", status, answer, http.StatusOK)
	}
	status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"reject"}`)
	if stands, ok := answer["recorded"].(map[string]any); status != http.StatusConflict || !ok || stands["decision"] != "approve" {
		t.Errorf("reject of an approved call: got %d %v, want %d with the approval", status, answer, http.StatusConflict)
	}
	for body, want := range map[string]int{`{"decision":"edit","args":{"expression":7}}`: 422, `{"decision":"edit","args":{"expressoin":"7"}}`: 422, `{}`: 422, `{"decision":"edit"}`: 422, `{"decision":"answer"}`: 422, `[]`: 400} {
		if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[1].ID, body); status != want {
			t.Errorf("%s: %d %v, want %d", body, status, answer, want)
		}
	}
	if status, _ := kit.Decide(t, p.Endpoint, in.ThreadID, "nonsense", `{"decision":"approve"}`); status != http.StatusNotFound {
		t.Errorf("decision about an unknown interrupt: got %d, want %d", status, http.StatusNotFound)
	}
	p.Kill()
	p.Start(t)
	if status, answer := kit.Decide(t, p.Endpoint, in.ThreadID, questions[1].ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK {
		t.Errorf("edit: got %d %v, want %d", status, answer, http.StatusOK)
	}
	f := p.FollowThread(t, in)
	f.UntilSuccess(t)
	messages := kit.ShownMessages(t, nil, f.Events)
	if n := len(messages); n != 5 || messages[n-1].Content != done || messages[1].ToolCalls[1].Function.Arguments != `{"expression":"20+1"}` {
		t.Errorf("messages of the thread = %+v, want 5 with the edited arguments and the answer", messages)
	}
	results := kit.ToolResultsSent(t, prompt)
	slices.Sort(results)
	if !slices.Equal(results, []string{"14", "21"}) {
		t.Errorf("results sent to the model = %q, want %q", results, []string{"14", "21"})
	}
	// The thread has continued. A repeated decision still gets the recorded one.
	if status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["repeated"] != true {
		t.Errorf("approve at the end: got %d %v, want %d as a repeat", status, answer, http.StatusOK)
	}
	status, answer = kit.Decide(t, p.Endpoint, in.ThreadID, questions[1].ID, `{"decision":"approve"}`)
	if stands, ok := answer["recorded"].(map[string]any); status != http.StatusConflict || !ok || stands["decision"] != "edit" {
		t.Errorf("approve of an edited call: got %d %v, want %d with the edit", status, answer, http.StatusConflict)
	}
}

// TestApprovalExpires: an approval expires. The model receives the expiry, and the thread continues
// by itself.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "8+8")
	in := kit.NewInput(prompt)
	asked := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	asked.Finish(t)
	if q := kit.InterruptsOf(t, asked.Events)[0]; q.ExpiresAt == "" {
		t.Errorf("interrupt = %+v, want a time of expiry", q)
	}
	f := kit.Shared.FollowThread(t, in)
	f.UntilSuccess(t)
	if got := kit.ToolResultsSent(t, prompt); len(got) != 1 || !strings.HasPrefix(got[0], "The approval of this call expired") {
		t.Errorf("results sent to the model = %q, want one expired approval", got)
	}
	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, kit.InterruptsOf(t, asked.Events)[0].ID, `{"decision":"approve"}`); status != http.StatusGone {
		t.Errorf("approve of an expired interrupt: got %d %v, want %d", status, answer, http.StatusGone)
	}
	// The client answers after the expiry, and is shown the outcome.
	late := in
	late.RunID, late.Messages = "run-2", kit.ShownMessages(t, in.Messages, asked.Events)
	late.Resume = []any{map[string]any{"interruptId": kit.InterruptsOf(t, asked.Events)[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	events := kit.Shared.RunAgent(t, kit.CarefulPath, late)
	messages := kit.ShownMessages(t, late.Messages, events)
	if n := len(messages); n != 4 || messages[n-1].Content != done || kit.Outcome(events[len(events)-1]) != "success" {
		t.Errorf("messages of the late client = %+v, want 4 with the answer, and success", messages)
	}
	notice := slices.IndexFunc(events, kit.IsCustom)
	if notice < 0 {
		t.Fatal("events of the late client: want the recorded decision, got none")
	}
	if got := kit.CustomValue[map[string]any](t, events[notice], "perdure.decision"); got["decision"] != "expire" || got["toolCallId"] == nil {
		t.Errorf("recorded decision of the late client = %v, want expire with its call", got)
	}
	if n := len(kit.SharedModel.Calls(t, prompt)); n != 2 {
		t.Errorf("number of model calls = %d, want 2", n)
	}
}

// TestRecordedDecisionWinsOverInput: another approver decides one of two interrupts before the
// client answers both. The first decision counts, and the client gets it.
func TestRecordedDecisionWinsOverInput(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7", "9+9")
	in := kit.NewInput(prompt)
	questions := kit.InterruptsOf(t, kit.Shared.RunAgent(t, kit.CarefulPath, in))
	if status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, questions[0].ID, `{"decision":"reject","reason":"No."}`); status != http.StatusOK {
		t.Fatalf("reject: got %d %v, want %d", status, answer, http.StatusOK)
	}
	then := in
	then.RunID = "run-2"
	for _, q := range questions {
		then.Resume = append(then.Resume, map[string]any{"interruptId": q.ID, "status": "resolved", "payload": map[string]any{"approved": true}})
	}
	events := kit.Shared.RunAgent(t, kit.CarefulPath, then)
	var decisions []map[string]any
	for _, e := range events {
		if kit.IsCustom(e) {
			decisions = append(decisions, kit.CustomValue[map[string]any](t, e, "perdure.decision"))
		}
	}
	if len(decisions) != 1 || decisions[0]["interruptId"] != questions[0].ID || decisions[0]["decision"] != "reject" || decisions[0]["reason"] != "No." {
		t.Errorf("decisions of the client = %v, want one rejection with its reason", decisions)
	}
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	if len(got) != 2 || got[0] != "18" || got[1] == "14" {
		t.Errorf("results sent to the model = %q, want 18 and a rejection", got)
	}
}

// TestConcurrentDecisions: two people decide the same ten calls concurrently, in different
// orders. Each call has one decision and is made once as decided.
func TestConcurrentDecisions(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	var expressions []string
	for i := range 8 {
		expressions = append(expressions, fmt.Sprintf("7*1%d", i))
	}
	kit.ScriptCalculations(t, prompt, done, expressions...)
	in := kit.NewInput(prompt)
	asked := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	asked.Finish(t)
	questions := kit.InterruptsOf(t, asked.Events)
	var mu sync.Mutex
	taken := map[string]string{}
	var people sync.WaitGroup
	for person := range 2 {
		people.Go(func() {
			for i := range questions {
				at := i
				if person == 1 {
					at = len(questions) - 1 - i
				}
				args := fmt.Sprintf(`{"expression":"%d"}`, 1000*(person+1)+at)
				status, answer := kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, questions[at].ID, `{"decision":"edit","args":`+args+`}`)
				mu.Lock()
				switch {
				case status == http.StatusOK && taken[questions[at].ID] == "":
					taken[questions[at].ID] = fmt.Sprint(1000*(person+1) + at)
				case status == http.StatusOK:
					t.Errorf("number of decisions about %s = 2, want 1", questions[at].ID)
				case status != http.StatusConflict:
					t.Errorf("decision: got %d %v, want %d or %d", status, answer, http.StatusOK, http.StatusConflict)
				}
				mu.Unlock()
			}
		})
	}
	people.Wait()
	f := kit.Shared.FollowThread(t, in)
	f.UntilSuccess(t)
	var want []string
	for _, q := range questions {
		want = append(want, taken[q.ID])
	}
	got := kit.ToolResultsSent(t, prompt)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the model received %q, want the decisions %q", got, want)
	}
}

// TestApprovalWithSameRunID: CopilotKit answers under the id of the run that asked, and adds a
// tool message with the person's answer. Perdure does not take it as the result of the call.
func TestApprovalWithSameRunID(t *testing.T) {
	t.Parallel()
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	first := kit.NewInput(prompt)
	asked := kit.Shared.FollowAgent(t, kit.CarefulPath, first)
	asked.Finish(t)
	question := kit.InterruptsOf(t, asked.Events)[0]
	again := first
	again.Messages = append(kit.ShownMessages(t, first.Messages, asked.Events), kit.Message{ID: "m-1", Role: "tool", ToolCallID: question.ToolCallID, Content: `{"approved":true}`})
	again.Resume = []any{map[string]any{"interruptId": question.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	then := kit.Shared.FollowAgent(t, kit.CarefulPath, again)
	then.Finish(t)
	if started := then.Events[0]; started.Member("runId") != first.RunID {
		t.Errorf("first event of the next run = %s, want the run %s", started.Data, first.RunID)
	}
	messages := kit.ShownMessages(t, again.Messages, then.Events)
	if n := len(messages); n != 4 || messages[n-1].Content != done || messages[2].Content != "14" {
		t.Errorf("messages of the client = %+v, want 4 with the result 14 and the answer", messages)
	}
	if got := kit.ToolResultsSent(t, prompt); !slices.Equal(got, []string{"14"}) {
		t.Errorf("results sent to the model = %q, want %q", got, []string{"14"})
	}
	kit.WantSameEvents(t, "the question again", asked.Events, kit.Shared.RunAgent(t, kit.CarefulPath, first))
	kit.WantSameEvents(t, "the answer again", then.Events, kit.Shared.RunAgent(t, kit.CarefulPath, again))
	later := kit.Shared.FollowAfter(t, first, asked.Events)
	later.Finish(t)
	kit.WantSameEvents(t, "after the question", then.Events, later.Events[len(asked.Events):])
}
