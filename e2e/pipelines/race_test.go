package pipelines

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// raceCount returns how often each race runs: ten times, or the value of E2E_MOMENTS.
func raceCount() int {
	if n, err := strconv.Atoi(os.Getenv("E2E_MOMENTS")); err == nil {
		return n
	}
	return 10
}

// concurrently runs two functions at the same time.
func concurrently(a, b func()) {
	var both sync.WaitGroup
	begin := make(chan struct{})
	for _, do := range []func(){a, b} {
		both.Go(func() {
			<-begin
			do()
		})
	}
	close(begin)
	both.Wait()
}

// response is the response to one of two concurrent requests.
type response struct {
	status int
	answer map[string]any
}

func (a response) String() string { return fmt.Sprintf("%d %v", a.status, a.answer["code"]) }

// wantSame checks the response to the same request sent again: an accepted request is repeated, and
// a refused one is refused again.
func (a response) wantSame(t *testing.T, again response) {
	t.Helper()
	taken := a.status == http.StatusOK
	if taken != (again.status == http.StatusOK) || taken && again.answer["repeated"] != true {
		t.Errorf("first response = %v, repeated one = %v: %v, want the same decision", a, again, again.answer)
	}
}

// hasMessage reports whether the conversation of a thread contains a text.
func hasMessage(t *testing.T, in kit.Input, what string) bool {
	t.Helper()
	resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("messages: got %s %v, want %d", resp.Status, err, http.StatusOK)
	}
	return bytes.Contains(body, []byte(what))
}

// postInput posts an input, reads the response to its end, and returns the status and the body.
func postInput(t *testing.T, path string, in kit.Input) (int, string) {
	t.Helper()
	resp, err := kit.Shared.Post(t.Context(), path, in)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(body)
}

// TestConcurrentRequests: two requests arrive at the same time, and one may end what the other is
// about. What Perdure acknowledges holds, in the conversation and for a client that repeats it.
// What it refuses has no effect, and every request gets a response.
func TestConcurrentRequests(t *testing.T) {
	t.Parallel()
	for name, race := range map[string]func(t *testing.T) (outcomes string){
		"approval and cancel":         raceApproveAndCancel,
		"approval and another input":  raceApproveAndInput,
		"result and cancel":           raceResultAndCancel,
		"result and another input":    raceResultAndInput,
		"steering and the end":        raceSteerAndEnd,
		"two answers by input":        raceSameAnswers,
		"answer by input and by REST": raceInputAndREST,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcomes := map[string]int{}
			for range raceCount() {
				outcomes[race(t)]++
			}
			t.Logf("%v", outcomes)
		})
	}
}

// raceApproveAndCancel sends an approval and a cancel concurrently.
func raceApproveAndCancel(t *testing.T) string {
	t.Helper()
	prompt := kit.Marked("Work it out.")
	kit.ScriptCalculations(t, prompt, kit.Marked("There."), "7+7")
	in := kit.NewInput(prompt).Hold()
	f := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	question := kit.CustomValue[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	approve := func() (a response) {
		a.status, a.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`)
		return a
	}
	var first response
	concurrently(func() { first = approve() }, func() { kit.Shared.Cancel(t, in) })
	f.Finish(t)
	if first.status != http.StatusOK && (first.status != http.StatusNotFound || hasMessage(t, in, `"14"`)) {
		t.Errorf("approval = %v, want success, or that the run has ended without the call", first)
	}
	first.wantSame(t, approve())
	return first.String()
}

// raceApproveAndInput sends an approval and an input concurrently.
func raceApproveAndInput(t *testing.T) string {
	t.Helper()
	prompt, then := kit.Marked("Work it out."), kit.Marked("Never mind.")
	kit.ScriptCalculations(t, prompt, kit.Marked("There."), "7+7")
	kit.SharedModel.AnswerWith(t, then, kit.Marked("Fine."))
	in := kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	f.Finish(t)
	question := kit.InterruptsOf(t, f.Events)[0]
	approve := func() (a response) {
		a.status, a.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`)
		return a
	}
	var first response
	var status int
	concurrently(func() { first = approve() }, func() {
		status, _ = postInput(t, kit.CarefulPath, in.NextRun("run-2", "interrupt", kit.UserMessage(then)))
	})
	if first.status != http.StatusOK || status != http.StatusOK && status != http.StatusConflict {
		t.Errorf("approval = %v, input = %d, want success of the approval, and success or a conflict of the input", first, status)
	}
	first.wantSame(t, approve())
	if status == http.StatusOK != hasMessage(t, in, then) {
		t.Errorf("input = %d, want success exactly if the conversation has its answer", status)
	}
	return fmt.Sprint(first, " ", status)
}

// raceResultAndCancel sends a tool result and a cancel concurrently.
func raceResultAndCancel(t *testing.T) string {
	t.Helper()
	prompt, blue := kit.Marked("Ask me."), kit.Marked("blue")
	kit.ScriptColorPicks(t, prompt, kit.Marked("Thank you."), "sky")
	in := kit.NewInput(prompt).Hold()
	in.Tools = kit.PickColor
	f := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	call := kit.CustomValue[[]string](t, f.Until(t, kit.IsCustom), "perdure.toolCalls")[0]
	give := func() (a response) {
		a.status, a.answer = kit.PostToolResult(t, kit.Shared.Endpoint, in.ThreadID, kit.ToolResultBody(call, blue))
		return a
	}
	var first response
	concurrently(func() { first = give() }, func() { kit.Shared.Cancel(t, in) })
	f.Finish(t)
	refused := first.status == http.StatusGone || first.answer["code"] == "answered" // the cancel has closed the call
	if first.status != http.StatusOK && !refused || (first.status == http.StatusOK) != hasMessage(t, in, blue) {
		t.Errorf("result = %v, in the conversation: %t, want it there exactly if it is accepted", first, hasMessage(t, in, blue))
	}
	first.wantSame(t, give())
	return first.String()
}

// raceResultAndInput sends a tool result and an input concurrently.
func raceResultAndInput(t *testing.T) string {
	t.Helper()
	prompt, blue, then := kit.Marked("Ask me."), kit.Marked("blue"), kit.Marked("Never mind.")
	kit.ScriptColorPicks(t, prompt, kit.Marked("Thank you."), "sky", "sea")
	kit.SharedModel.AnswerWith(t, then, kit.Marked("Fine."))
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	f := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	f.Finish(t)
	call := kit.ToolCallIDs(f.Events)[0]
	give := func() (a response) {
		a.status, a.answer = kit.PostToolResult(t, kit.Shared.Endpoint, in.ThreadID, kit.ToolResultBody(call, blue))
		return a
	}
	var first response
	var status int
	concurrently(func() { first = give() }, func() {
		status, _ = postInput(t, "/v1/agents/clerk/runs", in.NextRun("run-2", "reject", kit.UserMessage(then)))
	})
	if status != http.StatusOK || first.status != http.StatusOK && first.status != http.StatusGone && first.status != http.StatusNotFound {
		t.Errorf("result = %v, input = %d, want both accepted, or the result refused", first, status)
	}
	if (first.status == http.StatusOK) != hasMessage(t, in, blue) {
		t.Errorf("result = %v, in the conversation: %t, want it there exactly if it is accepted", first, hasMessage(t, in, blue))
	}
	first.wantSame(t, give())
	return fmt.Sprint(first, " ", status)
}

// raceSteerAndEnd sends a steering message while the run ends.
func raceSteerAndEnd(t *testing.T) string {
	t.Helper()
	prompt, more, done := kit.Marked("Hello."), kit.Marked("And more."), kit.Marked("More.")
	kit.SharedModel.AnswerWith(t, prompt, kit.Marked("Hello you."))
	kit.SharedModel.AnswerWith(t, more, done)
	in := kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.AssistantPath, in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", map[string]any{"message": kit.UserMessage(more)})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	f.Finish(t)
	taken := resp.StatusCode == http.StatusAccepted
	if !taken && resp.StatusCode != http.StatusConflict || taken != hasMessage(t, in, more) || taken != hasMessage(t, in, done) {
		t.Errorf("steering = %s, in the conversation: %t, with an answer: %t, want both exactly if it is accepted", resp.Status, hasMessage(t, in, more), hasMessage(t, in, done))
	}
	return resp.Status
}

// raceInputs asks about a call and sends two concurrent answers. approve is an input that approves.
func raceInputs(t *testing.T, other func(in kit.Input, question kit.Interrupt, approve kit.Input)) (in kit.Input, status int, body string) {
	t.Helper()
	prompt := kit.Marked("Work it out.")
	kit.ScriptCalculations(t, prompt, kit.Marked("There."), "7+7")
	in = kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.CarefulPath, in)
	f.Finish(t)
	question := kit.InterruptsOf(t, f.Events)[0]
	approve := in
	approve.RunID = "run-2"
	approve.Resume = []any{map[string]any{"interruptId": question.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	concurrently(func() { status, body = postInput(t, kit.CarefulPath, approve) }, func() { other(in, question, approve) })
	return in, status, body
}

// raceSameAnswers sends two inputs with the same decision concurrently.
func raceSameAnswers(t *testing.T) string {
	t.Helper()
	var second int
	in, first, _ := raceInputs(t, func(_ kit.Input, _ kit.Interrupt, approve kit.Input) {
		approve.RunID = "run-3"
		second, _ = postInput(t, kit.CarefulPath, approve)
	})
	if first != http.StatusOK || second != http.StatusOK || !hasMessage(t, in, `"14"`) {
		t.Errorf("statuses = %d and %d, call made: %t, want success and the call", first, second, hasMessage(t, in, `"14"`))
	}
	return fmt.Sprint(first, " ", second)
}

// raceInputAndREST sends an input and a decision concurrently.
func raceInputAndREST(t *testing.T) string {
	t.Helper()
	var rejected response
	_, status, body := raceInputs(t, func(in kit.Input, question kit.Interrupt, _ kit.Input) {
		rejected.status, rejected.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"reject"}`)
	})
	stands := rejected.status == http.StatusOK
	if status != http.StatusOK || !stands && rejected.status != http.StatusConflict {
		t.Errorf("input = %d, other input = %v, want success, and a conflict for a different one", status, rejected)
	}
	if made := strings.Contains(body, `"content":"14"`); made == stands || stands != strings.Contains(body, "perdure.decision") {
		t.Errorf("other decision = %v, approving input = %s, want exactly one to decide", rejected, body)
	}
	return fmt.Sprint(status, " ", rejected)
}
