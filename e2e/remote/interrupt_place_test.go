package remote

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// placed has a remote agent whose interrupts have a rule, and an agent for each place in which it works.
const placed = `name: payer
description: Pays bills.
remote: {url: URL, interrupts: RULE}
---
name: pipe
steps:
  - {name: pay, agent: payer, input: "pay ${input.text}"}
---
name: each
steps:
  - name: all
    map:
      items: "['one', 'two']"
      concurrency: 2
      steps: [{name: pay, agent: payer, input: "pay ${item}"}]
---
name: chief
model: openai/scripted-by-the-test
tools: ["agent:payer"]
---
name: desk
model: openai/scripted-by-the-test
tools: ["handoff:payer"]
`

// askInPlaces has ada run each agent of placed. It returns the paths of the interrupts of each thread.
func (p people) askInPlaces(t *testing.T) (approvals map[string][]string) {
	t.Helper()
	yes, no := true, false
	approvals = map[string][]string{}
	for _, agent := range []string{"pipe", "each", "chief", "desk"} {
		in := kit.NewInput(kit.Marked("Settle the account."))
		prompt := in.Messages[0].Content
		switch agent {
		case "chief":
			kit.SharedModel.Answer(t,
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "payer", Arguments: `{"task":"pay"}`}}}},
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: "Paid."}})
		case "desk":
			kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: prompt}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "transfer_to_payer", Arguments: `{}`}}}})
		}
		asked := p.askWith(t, agent, in)
		if want := map[string]int{"each": 2}[agent]; len(asked) != max(want, 1) {
			t.Errorf("%s: %d interrupts, want %d", agent, len(asked), max(want, 1))
		}
		approvals[in.ThreadID] = asked
	}
	return approvals
}

// wantResumed waits until each thread of placed has succeeded, and checks what the remote has received: an
// input for each interrupt, and one with its decision.
func (p people) wantResumed(t *testing.T, approvals map[string][]string, inputs chan map[string]any, want string) {
	t.Helper()
	count := 0
	for thread, asked := range approvals {
		count += len(asked)
		for _, run := range p.awaitRuns(t, thread, 2) {
			if run["code"] != nil {
				t.Errorf("thread %s: run %v, want none that failed", thread, run)
			}
		}
	}
	resumed := 0
	for range 2 * count {
		if in := <-inputs; in["resume"] != nil {
			resumed++
			wantResume(t, in, want)
		}
	}
	if resumed != count || len(inputs) > 0 {
		t.Errorf("the remote received %d decisions, want %d, and %d further inputs, want none", resumed, count, len(inputs))
	}
}

// payAsker is a remote agent that asks once on each thread.
func payAsker(t *testing.T) (url string, inputs chan map[string]any) {
	t.Helper()
	return asker(t, func(_ func(string), end func(string)) {
		end(`,"outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"input","message":"Pay?"}]}`)
	})
}

// TestRuleInPlaces: the rule about the interrupts of a remote agent applies in a step, in each item of a
// map, in a subagent and after a handoff. The process is killed between the votes of a quorum.
func TestRuleInPlaces(t *testing.T) {
	t.Parallel()
	url, inputs := payAsker(t)
	p := startPeople(t, url, strings.Replace(placed, "RULE", "{approvers: [role:finance], quorum: 2, notByRequester: true}", 1))
	yes := `{"decision":"answer","content":{"pay":true}}`
	approvals := p.askInPlaces(t)
	for _, asked := range approvals {
		for _, approval := range asked {
			p.wantAnswer(t, "ada", approval, yes, "403 not_an_approver0")
			p.wantAnswer(t, "dora", approval, yes, "403 not_an_approver0")
			p.wantAnswer(t, "bob", approval, yes, "200 1")
		}
	}
	p.Kill()
	p.Start(t)
	for _, asked := range approvals {
		for _, approval := range asked {
			p.wantAnswer(t, "bob", approval, yes, "200 1")
			p.wantAnswer(t, "cora", approval, `{"decision":"answer","content":{"pay":false}}`, "409 other_edit0")
			p.wantAnswer(t, "cora", approval, yes, "200 0")
		}
	}
	p.wantResumed(t, approvals, inputs, `[{"interruptId":"i1","status":"resolved","payload":{"pay":true}}]`)
}

// TestExpiryInPlaces: an interrupt that nobody answers in time is cancelled at the remote agent, in each
// place, and the run continues.
func TestExpiryInPlaces(t *testing.T) {
	t.Parallel()
	url, inputs := payAsker(t)
	p := startPeople(t, url, strings.Replace(placed, "RULE", "{approvers: [cora], expires: 1s, onExpiry: reject}", 1))
	p.wantResumed(t, p.askInPlaces(t), inputs, `[{"interruptId":"i1","status":"cancelled"}]`)
}
