package workflows_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/workflows"
)

func TestPayloadsAreBounded(t *testing.T) {
	t.Parallel()
	converter := workflows.DataConverter()
	fits := strings.Repeat("x", workflows.MaxPayload-2) // and its quotes
	if _, err := converter.ToPayload(fits); err != nil {
		t.Errorf("%d bytes: %v", len(fits), err)
	}
	_, err := converter.ToPayloads("small", workflows.Finish{Message: fits})
	var tooLarge *workflows.PayloadError
	if !errors.As(err, &tooLarge) || tooLarge.Value != "workflows.Finish" || tooLarge.Size <= workflows.MaxPayload {
		t.Fatalf("content in a payload: %v, want a PayloadError that names it", err)
	}
	if strings.Contains(err.Error(), "xxx") || !strings.Contains(err.Error(), "values[1]") {
		t.Errorf("the error quotes content, or does not say which value: %.100s", err)
	}
	var back workflows.Finish
	p, err := converter.ToPayloads(workflows.Finish{Code: "c"})
	if err != nil || converter.FromPayloads(p, &back) != nil || back.Code != "c" {
		t.Errorf("what fits comes back as %+v, %v", back, err)
	}
}

// Ids come from clients and may be as long and odd as the api accepts: they must never make a message
// of the workflow too large for a history, where it would fail again and again.
func TestTheOddestIDsFit(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{strings.Repeat(`"`, 1000), strings.Repeat("\u2028", 333), strings.Repeat("<", 1000)} {
		oddestIDsFit(t, odd)
	}
}

func oddestIDsFit(t *testing.T, odd string) {
	t.Helper()
	run := workflows.RunRef{Tenant: "default", Thread: odd, ID: odd}
	name, hash := strings.Repeat("n", 64), strings.Repeat("f", 64)
	n := int64(1 << 53)
	usage := workflows.Usage{Provider: name, Model: strings.Repeat("m", 128), Input: &n, Output: &n, Total: &n, Reasoning: &n, CachedInput: &n, CacheWrite: &n}
	step := workflows.Step{Run: run, Execution: hash, Agent: name, Revision: hash, ID: "1000/tools/7", Turn: 1000, Name: "tools", Closes: "model", After: 1 << 60}
	finish := workflows.Finish{Run: run, Execution: hash, After: 1 << 60, Outcome: workflows.OutcomeError, Code: name, Message: strings.Repeat("m", 200), Beginning: workflows.Beginning{Input: 1 << 60, Digest: hash}, Agent: name, Revision: hash, First: "1/model"}
	answer := workflows.ModelAnswer{Outcome: workflows.OutcomeSuccess, Seq: 1 << 60, MessageID: name, Finish: "content_filter", Usage: usage}
	for i := range 9 {
		finish.Unfinished = append(finish.Unfinished, workflows.Lane{Index: i, After: 1 << 60})
		answer.Calls = append(answer.Calls, workflows.Call{ID: name, Tool: name})
	}
	for range workflows.MaxUsages {
		finish.Usage = append(finish.Usage, usage)
	}
	id := strings.Repeat("c", 32) // as our ids are
	waits := &workflows.Interrupts{MessageID: id}
	for i := range workflows.MaxInterrupts {
		decision := &workflows.Decision{CallID: id, Kind: workflows.DecisionApprove, Digest: hash, Input: 1 << 60, Args: hash[:32]}
		call := workflows.Call{ID: id, Tool: name, Approval: &workflows.Approval{Rule: 31, Args: hash[:32], Expires: 1 << 60, OnExpiry: workflows.OnExpiryReject}}
		waits.Calls = append(waits.Calls, workflows.Interrupt{Call: call, Index: i, Expires: time.Now(), Decision: decision})
	}
	ordinary := workflows.RunInput{Run: workflows.RunRef{Tenant: "default", Thread: name, ID: name}, Agent: name, Revision: hash, Input: 1 << 60, Digest: hash, Resume: waits}
	in := workflows.RunInput{Run: run, Agent: name, Revision: hash, Input: 1 << 60, Digest: hash, Token: name}
	for _, value := range []any{
		ordinary, workflows.ParkedInput{Run: ordinary},
		in, workflows.Submit{RunID: odd, Digest: hash, OnBusy: workflows.OnBusyInterrupt, Offer: &in},
		workflows.ModelCall{Step: step, Beginning: workflows.Beginning{Input: 1 << 60, Digest: hash}},
		workflows.ToolCall{Step: step, Open: step.ID, Lane: 7, LaneAfter: 1 << 60, CallID: name, MessageID: name},
		finish, answer, workflows.Submit{RunID: odd, Digest: hash}, workflows.Active{RunID: odd},
	} {
		if _, err := workflows.DataConverter().ToPayload(value); err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprintf("%+v", finish)[:200])
	}
}
