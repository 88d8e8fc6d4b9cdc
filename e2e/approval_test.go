package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const careful = "/v1/agents/careful/runs"

// interrupt is a question that a run has ended with.
type interrupt struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	ToolCallID string `json:"toolCallId"`
	ExpiresAt  string `json:"expiresAt"`

	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}

func interruptsOf(t *testing.T, events []event) []interrupt {
	t.Helper()
	var end struct {
		Outcome struct {
			Interrupts []interrupt `json:"interrupts"`
		} `json:"outcome"`
	}
	last := events[len(events)-1]
	if err := json.Unmarshal(last.Data, &end); err != nil {
		t.Fatal(err)
	}
	if outcome(last) != "interrupt" || len(end.Outcome.Interrupts) == 0 {
		t.Fatalf("the run ended with %s, want questions", last.Data)
	}
	return end.Outcome.Interrupts
}

// worksOut lets the model ask for calculations, and say something when it has the results.
func worksOut(t *testing.T, prompt, then string, expressions ...string) {
	t.Helper()
	yes, no := true, false
	var calls []modelCall
	for _, e := range expressions {
		calls = append(calls, modelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":%q}`, e)})
	}
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: prompt, HasToolResult: &no}, Response: response{ToolCalls: calls}},
		fixture{Match: match{UserMessage: prompt, HasToolResult: &yes}, Response: response{Content: then}})
}

// resultsOf returns the results of tool calls that a model was sent last.
func resultsOf(t *testing.T, prompt string) []string {
	t.Helper()
	calls := sharedModel.calls(t, prompt)
	var results []string
	for _, m := range calls[len(calls)-1].Body.Messages {
		if m.Role == "tool" {
			results = append(results, m.text())
		}
	}
	return results
}

// decide decides about a call over REST and returns the status and what was answered.
func decide(t *testing.T, p *endpoint, threadID, id, body string) (int, map[string]any) {
	t.Helper()
	resp, err := p.post(t.Context(), "/v1/threads/"+threadID+"/approvals/"+id, json.RawMessage(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// Stock clients of both generations are asked, answer, and see the calls made, edited, refused or
// answered; a call that nobody need approve is made meanwhile.
func TestApproval(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		payload map[string]any
		want    string // in the result
	}{
		"approved": {map[string]any{"approved": true}, "14"},
		"edited":   {map[string]any{"approved": true, "editedArgs": map[string]any{"expression": "100+1"}}, "101"},
		"refused":  {map[string]any{"approved": false, "reason": "too dear"}, `A person did not approve this call. It was not made. They said: "too dear"`},
		"answered": {map[string]any{"approved": false, "content": "fourteen"}, "fourteen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				prompt, done := say("Work it out."), say("There.")
				worksOut(t, prompt, done, "7+7", "1+1")
				d := g.drive(t, shared, script{
					URL: shared.url(careful), Messages: []message{user(prompt)},
					Runs: []scriptedRun{{RunID: "r1"}, {RunID: "r2", Resume: tt.payload}},
				})
				ends := d.finish(t)
				if n := len(ends[0].Messages); n != 3 || ends[0].Messages[2].Content != "2" {
					t.Fatalf("when it is asked the client has %+v", ends[0].Messages)
				}
				last := ends[1].Messages
				if n := len(last); n != 5 || last[n-1].Content != done {
					t.Errorf("at the end the client has %+v", last)
				}
				if got := resultsOf(t, prompt); !slices.Equal(got, []string{"2", tt.want}) && !slices.Equal(got, []string{tt.want, "2"}) {
					t.Errorf("the model heard the results %q", got)
				}
			})
		})
	}
}

// Nobody gives up a question by not answering it, and what does not fit is refused before anything
// happens.
func TestQuestionsStayOpen(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7", "7+0")
	first := newInput(prompt)
	asked := shared.followAgent(t, careful, first)
	asked.finish(t)
	questions := interruptsOf(t, asked.events)
	if len(questions) != 2 || questions[0].Reason != "tool_call" || questions[0].ToolCallID == "" || questions[0].ID == questions[1].ID {
		t.Fatalf("the questions are %+v", questions)
	}
	entry := func(id, status string, payload any) map[string]any {
		return map[string]any{"interruptId": id, "status": status, "payload": payload}
	}
	yes := map[string]any{"approved": true}
	try := func(code string, status int, resume ...any) {
		t.Helper()
		in := first
		in.RunID, in.Resume = "run-2", resume
		resp, err := shared.post(t.Context(), careful, in)
		if p := refused(t, resp, err); p.Code != code || p.Status != status {
			t.Errorf("refused with %d %s, want %d %s", p.Status, p.Code, status, code)
		}
	}
	try("interrupted", http.StatusConflict)
	try("interrupted", http.StatusConflict, entry(questions[0].ID, "resolved", yes))
	try("interrupted", http.StatusConflict, entry("nonsense", "resolved", yes))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", "yes"), entry(questions[1].ID, "resolved", yes))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", map[string]any{"approved": true, "editedArgs": 1}))
	try("invalid_answer", http.StatusUnprocessableEntity, entry(questions[0].ID, "resolved", yes), entry(questions[0].ID, "resolved", yes))
	said := first.after("run-2", "reject", user(say("Well?")))
	resp, err := shared.post(t.Context(), careful, said)
	if p := refused(t, resp, err); p.Code != "interrupted" {
		t.Errorf("to go on is refused with %+v", p)
	}
	if n := len(sharedModel.calls(t, prompt)); n != 1 {
		t.Errorf("the model was called %d times", n)
	}
	then := first
	then.RunID, then.Resume = "run-2", []any{entry(questions[0].ID, "cancelled", nil), entry(questions[1].ID, "resolved", yes)}
	delete(then.Resume[0].(map[string]any), "payload")
	f := shared.followAgent(t, careful, then)
	f.finish(t)
	results := resultsOf(t, prompt)
	slices.Sort(results)
	if len(results) != 2 || results[0] != "7" || !strings.HasPrefix(results[1], "Whoever was asked") {
		t.Errorf("the model heard %q", results)
	}
	same(t, "the same answer again", f.events, shared.runAgent(t, careful, then))
}

// Decisions come over REST while nobody is connected, and the process is killed between question
// and answer: the thread goes on by itself, and whoever follows it sees that.
func TestApprovalWithoutItsClient(t *testing.T) {
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"PERDURE_PARK_AFTER=100ms"}
	p.keep(t)
	p.start(t)
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7", "7+1")
	in := newInput(prompt)
	asked := p.followAgent(t, careful, in)
	asked.finish(t)
	questions := interruptsOf(t, asked.events)
	awaitType(t, p.endpoint, in, "thread.parked.v1")
	p.kill()
	p.start(t)
	status, answer := decide(t, p.endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`)
	if status != http.StatusOK || answer["decision"] != "approve" || answer["repeated"] != nil {
		t.Errorf("approve: %d %v", status, answer)
	}
	if status, answer = decide(t, p.endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["repeated"] != true {
		t.Errorf("approve again: %d %v", status, answer)
	}
	status, answer = decide(t, p.endpoint, in.ThreadID, questions[0].ID, `{"decision":"reject"}`)
	if stands, ok := answer["recorded"].(map[string]any); status != http.StatusConflict || !ok || stands["decision"] != "approve" {
		t.Errorf("reject what is approved: %d %v", status, answer)
	}
	for body, want := range map[string]int{`{"decision":"edit","args":{"expression":7}}`: 422, `{"decision":"edit","args":{"expressoin":"7"}}`: 422, `{}`: 422, `{"decision":"edit"}`: 422, `{"decision":"answer"}`: 422, `[]`: 400} {
		if status, answer := decide(t, p.endpoint, in.ThreadID, questions[1].ID, body); status != want {
			t.Errorf("%s: %d %v, want %d", body, status, answer, want)
		}
	}
	if status, _ := decide(t, p.endpoint, in.ThreadID, "nonsense", `{"decision":"approve"}`); status != http.StatusNotFound {
		t.Errorf("an unknown question: %d", status)
	}
	p.kill()
	p.start(t)
	if status, answer := decide(t, p.endpoint, in.ThreadID, questions[1].ID, `{"decision":"edit","args":{"expression":"20+1"}}`); status != http.StatusOK {
		t.Errorf("edit: %d %v", status, answer)
	}
	f := p.followThread(t, in)
	f.untilSuccess(t)
	messages := show(t, nil, f.events)
	if n := len(messages); n != 5 || messages[n-1].Content != done || messages[1].ToolCalls[1].Function.Arguments != `{"expression":"20+1"}` {
		t.Errorf("the thread has %+v", messages)
	}
	results := resultsOf(t, prompt)
	slices.Sort(results)
	if !slices.Equal(results, []string{"14", "21"}) {
		t.Errorf("the model heard %q", results)
	}
	// The thread has gone on: what was decided is still told.
	if status, answer = decide(t, p.endpoint, in.ThreadID, questions[0].ID, `{"decision":"approve"}`); status != http.StatusOK || answer["repeated"] != true {
		t.Errorf("approve at the end: %d %v", status, answer)
	}
	status, answer = decide(t, p.endpoint, in.ThreadID, questions[1].ID, `{"decision":"approve"}`)
	if stands, ok := answer["recorded"].(map[string]any); status != http.StatusConflict || !ok || stands["decision"] != "edit" {
		t.Errorf("approve what was edited: %d %v", status, answer)
	}
}

// Nobody answers in time: the model is told so, and the thread goes on by itself.
func TestApprovalExpires(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "8+8")
	in := newInput(prompt)
	asked := shared.followAgent(t, careful, in)
	asked.finish(t)
	if q := interruptsOf(t, asked.events)[0]; q.ExpiresAt == "" {
		t.Errorf("the question is %+v", q)
	}
	f := shared.followThread(t, in)
	f.untilSuccess(t)
	if got := resultsOf(t, prompt); len(got) != 1 || !strings.HasPrefix(got[0], "Nobody approved") {
		t.Errorf("the model heard %q", got)
	}
	if status, answer := decide(t, shared.endpoint, in.ThreadID, interruptsOf(t, asked.events)[0].ID, `{"decision":"approve"}`); status != http.StatusGone {
		t.Errorf("approve what has expired: %d %v", status, answer)
	}
	// Its client answers at last, and is shown what became of it.
	late := in
	late.RunID, late.Messages = "run-2", show(t, in.Messages, asked.events)
	late.Resume = []any{map[string]any{"interruptId": interruptsOf(t, asked.events)[0].ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	events := shared.runAgent(t, careful, late)
	messages := show(t, late.Messages, events)
	if n := len(messages); n != 4 || messages[n-1].Content != done || outcome(events[len(events)-1]) != "success" {
		t.Errorf("the client that was late has %+v", messages)
	}
	told := slices.IndexFunc(events, isCustom)
	if told < 0 {
		t.Fatal("the client that was late is not told what was decided")
	}
	if got := custom[map[string]any](t, events[told], "perdure.decision"); got["decision"] != "expire" || got["toolCallId"] == nil {
		t.Errorf("the client that was late is told %v", got)
	}
	if n := len(sharedModel.calls(t, prompt)); n != 2 {
		t.Errorf("the model was called %d times", n)
	}
}

// Of two questions somebody else has decided one before the client answers both: what was decided
// first counts, and the client is told.
func TestApprovalDecidedOtherwise(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7", "9+9")
	in := newInput(prompt)
	questions := interruptsOf(t, shared.runAgent(t, careful, in))
	if status, answer := decide(t, shared.endpoint, in.ThreadID, questions[0].ID, `{"decision":"reject","reason":"No."}`); status != http.StatusOK {
		t.Fatalf("reject: %d %v", status, answer)
	}
	then := in
	then.RunID = "run-2"
	for _, q := range questions {
		then.Resume = append(then.Resume, map[string]any{"interruptId": q.ID, "status": "resolved", "payload": map[string]any{"approved": true}})
	}
	events := shared.runAgent(t, careful, then)
	var told []map[string]any
	for _, e := range events {
		if isCustom(e) {
			told = append(told, custom[map[string]any](t, e, "perdure.decision"))
		}
	}
	if len(told) != 1 || told[0]["interruptId"] != questions[0].ID || told[0]["decision"] != "reject" || told[0]["reason"] != "No." {
		t.Errorf("the client is told %v", told)
	}
	got := resultsOf(t, prompt)
	slices.Sort(got)
	if len(got) != 2 || got[0] != "18" || got[1] == "14" {
		t.Errorf("the model heard %q", got)
	}
}

// Two people decide about the same ten calls at once, each in an order of their own: each call is
// decided once, and made once with what was decided.
func TestTwoPeopleDecideAtOnce(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	var expressions []string
	for i := range 8 {
		expressions = append(expressions, fmt.Sprintf("7*1%d", i))
	}
	worksOut(t, prompt, done, expressions...)
	in := newInput(prompt)
	asked := shared.followAgent(t, careful, in)
	asked.finish(t)
	questions := interruptsOf(t, asked.events)
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
				status, answer := decide(t, shared.endpoint, in.ThreadID, questions[at].ID, `{"decision":"edit","args":`+args+`}`)
				mu.Lock()
				switch {
				case status == http.StatusOK && taken[questions[at].ID] == "":
					taken[questions[at].ID] = fmt.Sprint(1000*(person+1) + at)
				case status == http.StatusOK:
					t.Errorf("%s was decided twice", questions[at].ID)
				case status != http.StatusConflict:
					t.Errorf("%d %v", status, answer)
				}
				mu.Unlock()
			}
		})
	}
	people.Wait()
	f := shared.followThread(t, in)
	f.untilSuccess(t)
	var want []string
	for _, q := range questions {
		want = append(want, taken[q.ID])
	}
	got := resultsOf(t, prompt)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the model heard %q, decided was %q", got, want)
	}
}

// followThread reads a thread from its beginning, run after run.
func (p *endpoint) followThread(t *testing.T, in input) *follower {
	t.Helper()
	f := p.reader(t, in)
	f.view = threadPath(in)
	if err := f.connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// untilSuccess reads a thread to the end of the run that succeeds, past those that ask.
func (f *follower) untilSuccess(t *testing.T) {
	t.Helper()
	for {
		e, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if e.terminal() && outcome(e) == "success" {
			return
		}
		if e.Type == "RUN_ERROR" {
			t.Fatalf("a run ended with %s", e.Data)
		}
	}
}

func (p *endpoint) runAgent(t *testing.T, path string, in input) []event {
	t.Helper()
	f := p.followAgent(t, path, in)
	f.finish(t)
	return f.events
}

// CopilotKit answers under the id of the run that asked, and sends what the person said as a tool
// message besides: that is no result of the call.
func TestApprovalUnderTheSameRunID(t *testing.T) {
	t.Parallel()
	prompt, done := say("Work it out."), say("There.")
	worksOut(t, prompt, done, "7+7")
	first := newInput(prompt)
	asked := shared.followAgent(t, careful, first)
	asked.finish(t)
	question := interruptsOf(t, asked.events)[0]
	again := first
	again.Messages = append(show(t, first.Messages, asked.events), message{ID: "m-1", Role: "tool", ToolCallID: question.ToolCallID, Content: `{"approved":true}`})
	again.Resume = []any{map[string]any{"interruptId": question.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	then := shared.followAgent(t, careful, again)
	then.finish(t)
	if started := then.events[0]; started.member("runId") != first.RunID {
		t.Errorf("it goes on with %s", started.Data)
	}
	messages := show(t, again.Messages, then.events)
	if n := len(messages); n != 4 || messages[n-1].Content != done || messages[2].Content != "14" {
		t.Errorf("the client has %+v", messages)
	}
	if got := resultsOf(t, prompt); !slices.Equal(got, []string{"14"}) {
		t.Errorf("the model heard %q", got)
	}
	same(t, "the question again", asked.events, shared.runAgent(t, careful, first))
	same(t, "the answer again", then.events, shared.runAgent(t, careful, again))
	behind := shared.behind(t, first, asked.events)
	behind.finish(t)
	same(t, "behind the question", then.events, behind.events[len(asked.events):])
}
