package activities_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools/builtin"
)

// decideQuestion decides the interrupt with the message question, some time after the run began.
// The messages of all interrupts that are open then go into asked.
func (f *fixture) decideQuestion(t *testing.T, after time.Duration, question string, asked *[]string) {
	f.env.RegisterDelayedCallback(func() {
		r, err := f.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for _, q := range r.Interrupts {
			if *asked = append(*asked, q.Message); q.Message != question {
				continue
			}
			d := runs.Decision{CallID: q.ToolCallID, Kind: runs.DecisionApprove, Digest: "d"}
			f.env.UpdateWorkflow(runs.UpdateDecide, "says "+question, &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
			}, runs.DecideRequest{Decisions: []runs.Decision{d}})
		}
	}, after)
}

// TestInterruptsOfNestedBranchesEnd: an interrupt of a nested branch ends when a sibling fails or
// the timeout passes. Interrupts of other branches stay open.
func TestInterruptsOfNestedBranchesEnd(t *testing.T) {
	t.Parallel()
	for name, leftBranch := range map[string]string{
		"a sibling fails": `
      - name: left
        onError: continue
        parallel:
          - {name: one, approve: {message: "One?"}}
          - {name: late, tool: note, args: {note: late, fail: true}, retry: {attempts: 2, interval: 1h}}`,
		"no time is left": `
      - name: left
        onError: continue
        timeout: 1h
        parallel:
          - {name: one, approve: {message: "One?"}}
          - {name: late, steps: [{name: now, tool: note, args: {note: late}}, {name: again, tool: note, args: {note: late}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &callJournal{}
			fixture := setup(t, echoModel, j.tool(), builtin.Approve())
			fixture.agent = parseDefinition(t, `name: a
model: test/m
tools: [note]
steps:
  - name: all
    parallel:`+leftBranch+`
      - {name: right, steps: [{name: two, approve: {message: "Two?"}}, {name: then, tool: note, args: {note: two}}]}
  - {name: last, tool: note, args: {note: "${steps.left.error.code}"}}
`)
			fixture.hold, fixture.limits.Duration = true, 10*time.Hour
			var before, after []string
			fixture.decideQuestion(t, 30*time.Minute, "nothing", &before)
			fixture.decideQuestion(t, 90*time.Minute, "Two?", &after)
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			wantEqual(t, "number of open interrupts", len(before), 2)
			wantEqual(t, "number of open interrupts after the decision", len(after), 1)
			code := map[string]string{"a sibling fails": "tool_failed", "no time is left": "timeout"}[name]
			j.wantEntries(t, "late", "late", "two", code)
			fixture.wantShownConversation(events)
		})
	}
}
