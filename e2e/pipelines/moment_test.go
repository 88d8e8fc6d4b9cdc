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

// contests returns how often two things are done at the same moment: ten times, or as E2E_MOMENTS
// says.
func contests() int {
	if n, err := strconv.Atoi(os.Getenv("E2E_MOMENTS")); err == nil {
		return n
	}
	return 10
}

// together does both at the same moment.
func together(a, b func()) {
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

// told is what somebody was told who said something in such a moment.
type told struct {
	status int
	answer map[string]any
}

func (a told) String() string { return fmt.Sprintf("%d %v", a.status, a.answer["code"]) }

// wantSame checks that the same again is answered as before: what was taken stands, and what was
// refused is still refused.
func (a told) wantSame(t *testing.T, again told) {
	t.Helper()
	taken := a.status == http.StatusOK
	if taken != (again.status == http.StatusOK) || taken && again.answer["repeated"] != true {
		t.Errorf("told %v at first, and %v when asked again: %v", a, again, again.answer)
	}
}

// hasHeard reports whether something stands in the conversation of a thread.
func hasHeard(t *testing.T, in kit.Input, what string) bool {
	t.Helper()
	resp, err := kit.Shared.Get(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the messages: %s %v", resp.Status, err)
	}
	return bytes.Contains(body, []byte(what))
}

// posts posts an input, reads its run to the end, and returns the status and all that came.
func posts(t *testing.T, path string, in kit.Input) (int, string) {
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

// Two things happen in the same moment, of which one may end what the other is about. Whatever was
// acknowledged stands from then on, in the conversation and for whoever says it again; what was
// refused has changed nothing; and nobody is left without an answer.
func TestTheSameMoment(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(t *testing.T) (came string){
		"approval and cancel":         approvesWhatIsCancelled,
		"approval and another input":  approvesWhatIsInterrupted,
		"result and cancel":           answersWhatIsCancelled,
		"result and another input":    answersWhatIsAbandoned,
		"steering and the end":        steersWhatEnds,
		"two answers by input":        answersTwice,
		"answer by input and by REST": answersOtherwise,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			came := map[string]int{}
			for range contests() {
				came[play(t)]++
			}
			t.Logf("%v", came)
		})
	}
}

func approvesWhatIsCancelled(t *testing.T) string {
	t.Helper()
	prompt := kit.Say("Work it out.")
	kit.WorksOut(t, prompt, kit.Say("There."), "7+7")
	in := kit.NewInput(prompt).Held()
	f := kit.Shared.FollowAgent(t, kit.Careful, in)
	question := kit.Custom[kit.Interrupt](t, f.Until(t, kit.IsCustom), "perdure.approval")
	approve := func() (a told) {
		a.status, a.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`)
		return a
	}
	var first told
	together(func() { first = approve() }, func() { kit.Shared.Cancel(t, in) })
	f.Finish(t)
	if first.status != http.StatusOK && (first.status != http.StatusNotFound || hasHeard(t, in, `"14"`)) {
		t.Errorf("the approval: %v", first)
	}
	first.wantSame(t, approve())
	return first.String()
}

func approvesWhatIsInterrupted(t *testing.T) string {
	t.Helper()
	prompt, then := kit.Say("Work it out."), kit.Say("Never mind.")
	kit.WorksOut(t, prompt, kit.Say("There."), "7+7")
	kit.SharedModel.AnswerWith(t, then, kit.Say("Fine."))
	in := kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.Careful, in)
	f.Finish(t)
	question := kit.InterruptsOf(t, f.Events)[0]
	approve := func() (a told) {
		a.status, a.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"approve"}`)
		return a
	}
	var first told
	var status int
	together(func() { first = approve() }, func() { status, _ = posts(t, kit.Careful, in.After("run-2", "interrupt", kit.User(then))) })
	if first.status != http.StatusOK || status != http.StatusOK && status != http.StatusConflict {
		t.Errorf("the approval: %v; the input: %d", first, status)
	}
	first.wantSame(t, approve())
	if status == http.StatusOK != hasHeard(t, in, then) {
		t.Errorf("the input: %d", status)
	}
	return fmt.Sprint(first, " ", status)
}

func answersWhatIsCancelled(t *testing.T) string {
	t.Helper()
	prompt, blue := kit.Say("Ask me."), kit.Say("blue")
	kit.Picks(t, prompt, kit.Say("Thank you."), "sky")
	in := kit.NewInput(prompt).Held()
	in.Tools = kit.PickColor
	f := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	call := kit.Custom[[]string](t, f.Until(t, kit.IsCustom), "perdure.toolCalls")[0]
	give := func() (a told) {
		a.status, a.answer = kit.GiveResult(t, kit.Shared.Endpoint, in.ThreadID, kit.CameTo(call, blue))
		return a
	}
	var first told
	together(func() { first = give() }, func() { kit.Shared.Cancel(t, in) })
	f.Finish(t)
	if first.status != http.StatusOK && first.status != http.StatusGone || (first.status == http.StatusOK) != hasHeard(t, in, blue) {
		t.Errorf("the result: %v; the conversation has it: %t", first, hasHeard(t, in, blue))
	}
	first.wantSame(t, give())
	return first.String()
}

func answersWhatIsAbandoned(t *testing.T) string {
	t.Helper()
	prompt, blue, then := kit.Say("Ask me."), kit.Say("blue"), kit.Say("Never mind.")
	kit.Picks(t, prompt, kit.Say("Thank you."), "sky", "sea")
	kit.SharedModel.AnswerWith(t, then, kit.Say("Fine."))
	in := kit.NewInput(prompt)
	in.Tools = kit.PickColor
	f := kit.Shared.FollowAgent(t, "/v1/agents/clerk/runs", in)
	f.Finish(t)
	call := kit.CallsOf(f.Events)[0]
	give := func() (a told) {
		a.status, a.answer = kit.GiveResult(t, kit.Shared.Endpoint, in.ThreadID, kit.CameTo(call, blue))
		return a
	}
	var first told
	var status int
	together(func() { first = give() }, func() { status, _ = posts(t, "/v1/agents/clerk/runs", in.After("run-2", "reject", kit.User(then))) })
	if status != http.StatusOK || first.status != http.StatusOK && first.status != http.StatusGone && first.status != http.StatusNotFound {
		t.Errorf("the result: %v; the input: %d", first, status)
	}
	if (first.status == http.StatusOK) != hasHeard(t, in, blue) {
		t.Errorf("the result: %v; the conversation has it: %t", first, hasHeard(t, in, blue))
	}
	first.wantSame(t, give())
	return fmt.Sprint(first, " ", status)
}

func steersWhatEnds(t *testing.T) string {
	t.Helper()
	prompt, more, done := kit.Say("Hello."), kit.Say("And more."), kit.Say("More.")
	kit.SharedModel.AnswerWith(t, prompt, kit.Say("Hello you."))
	kit.SharedModel.AnswerWith(t, more, done)
	in := kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.Assistant, in)
	f.Until(t, func(e kit.Event) bool { return e.Type == "TEXT_MESSAGE_CONTENT" })
	resp, err := kit.Shared.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/messages", map[string]any{"message": kit.User(more)})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	f.Finish(t)
	taken := resp.StatusCode == http.StatusAccepted
	if !taken && resp.StatusCode != http.StatusConflict || taken != hasHeard(t, in, more) || taken != hasHeard(t, in, done) {
		t.Errorf("steering: %s; the conversation has it: %t, and an answer: %t", resp.Status, hasHeard(t, in, more), hasHeard(t, in, done))
	}
	return resp.Status
}

// answersByInput asks about a call and has it answered by two at the same moment; approve is an
// input that does.
func answersByInput(t *testing.T, other func(in kit.Input, question kit.Interrupt, approve kit.Input)) (in kit.Input, status int, body string) {
	t.Helper()
	prompt := kit.Say("Work it out.")
	kit.WorksOut(t, prompt, kit.Say("There."), "7+7")
	in = kit.NewInput(prompt)
	f := kit.Shared.FollowAgent(t, kit.Careful, in)
	f.Finish(t)
	question := kit.InterruptsOf(t, f.Events)[0]
	approve := in
	approve.RunID = "run-2"
	approve.Resume = []any{map[string]any{"interruptId": question.ID, "status": "resolved", "payload": map[string]any{"approved": true}}}
	together(func() { status, body = posts(t, kit.Careful, approve) }, func() { other(in, question, approve) })
	return in, status, body
}

func answersTwice(t *testing.T) string {
	t.Helper()
	var second int
	in, first, _ := answersByInput(t, func(_ kit.Input, _ kit.Interrupt, approve kit.Input) {
		approve.RunID = "run-3"
		second, _ = posts(t, kit.Careful, approve)
	})
	if first != http.StatusOK || second != http.StatusOK || !hasHeard(t, in, `"14"`) {
		t.Errorf("%d and %d; it was worked out: %t", first, second, hasHeard(t, in, `"14"`))
	}
	return fmt.Sprint(first, " ", second)
}

func answersOtherwise(t *testing.T) string {
	t.Helper()
	var rejected told
	_, status, body := answersByInput(t, func(in kit.Input, question kit.Interrupt, _ kit.Input) {
		rejected.status, rejected.answer = kit.Decide(t, kit.Shared.Endpoint, in.ThreadID, question.ID, `{"decision":"reject"}`)
	})
	stands := rejected.status == http.StatusOK
	if status != http.StatusOK || !stands && rejected.status != http.StatusConflict {
		t.Errorf("the input: %d, the other one: %v", status, rejected)
	}
	if made := strings.Contains(body, `"content":"14"`); made == stands || stands != strings.Contains(body, "perdure.decision") {
		t.Errorf("the other one was told %v, and who approved is shown %s", rejected, body)
	}
	return fmt.Sprint(status, " ", rejected)
}
