package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/runs"
)

func TestPayloadsAreBounded(t *testing.T) {
	t.Parallel()
	converter := runs.DataConverter()
	fits := strings.Repeat("x", runs.MaxPayload-2) // with its quotes
	if _, err := converter.ToPayload(fits); err != nil {
		t.Errorf("payload of %d bytes: got %v, want no error", len(fits), err)
	}
	_, err := converter.ToPayloads("small", runs.FinishInput{Message: fits})
	var tooLarge *runs.PayloadError
	if !errors.As(err, &tooLarge) || tooLarge.Value != "runs.FinishInput" || tooLarge.Size <= runs.MaxPayload {
		t.Fatalf("content in a payload: got %v, want a PayloadError that names it", err)
	}
	if strings.Contains(err.Error(), "xxx") || !strings.Contains(err.Error(), "values[1]") {
		t.Errorf("error: got %.100s, want the value's name without content", err)
	}
	var back runs.FinishInput
	p, err := converter.ToPayloads(runs.FinishInput{Code: "c"})
	if err != nil || converter.FromPayloads(p, &back) != nil || back.Code != "c" {
		t.Errorf("decoded code = %q (%v), want %q", back.Code, err, "c")
	}
}

// TestLongIDsFitIntoPayloads: IDs come from clients and may be as long and odd as the API accepts.
// They must never make a payload of the workflow too large for a history, where it would fail again
// and again.
func TestLongIDsFitIntoPayloads(t *testing.T) {
	t.Parallel()
	for _, odd := range []string{strings.Repeat(`"`, 1000), strings.Repeat("\u2028", 333), strings.Repeat("<", 1000)} {
		wantPayloadsWithID(t, odd)
	}
}

// wantPayloadsWithID fails the test unless all payloads with a thread or run of this ID fit.
func wantPayloadsWithID(t *testing.T, odd string) {
	t.Helper()
	run := runs.Ref{Tenant: "default", Thread: odd, ID: odd}
	name, hash := strings.Repeat("n", 64), strings.Repeat("f", 64)
	n := int64(1 << 53)
	usage := runs.Usage{Provider: name, Model: strings.Repeat("m", 128), Input: &n, Output: &n, Total: &n, Reasoning: &n, CachedInput: &n, CacheWrite: &n}
	step := runs.Step{Run: run, Execution: hash, Agent: name, Revision: hash, ID: "1000/tools/7", Turn: 1000, Name: "tools", Closes: "model", After: 1 << 60}
	finish := runs.FinishInput{Run: run, Execution: hash, After: 1 << 60, Outcome: runs.OutcomeError, Code: name, Message: strings.Repeat("m", 200), Beginning: runs.Beginning{Input: 1 << 60, Digest: hash}, Agent: name, Revision: hash, First: "1/model"}
	answer := runs.ModelAnswer{Outcome: runs.OutcomeSuccess, Seq: 1 << 60, MessageID: name, Finish: "content_filter", Usage: usage}
	for i := range 9 {
		finish.Unfinished = append(finish.Unfinished, runs.Lane{Index: i, After: 1 << 60})
		answer.Calls = append(answer.Calls, runs.Call{ID: name, Tool: name})
	}
	for range runs.MaxUsages {
		finish.Usage = append(finish.Usage, usage)
	}
	id := strings.Repeat("c", 32) // like our own IDs
	waits := &runs.Interrupts{MessageID: id}
	for i := range runs.MaxInterrupts {
		decision := &runs.Decision{CallID: id, Kind: runs.DecisionApprove, Digest: hash, Proposal: 1 << 60, ArgsDigest: hash[:32]}
		call := runs.Call{ID: id, Tool: name, Approval: &runs.Approval{Rule: 31, ArgsDigest: hash[:32], Expires: 1 << 60, OnExpiry: runs.OnExpiryReject}}
		waits.Items = append(waits.Items, runs.Interrupt{Call: call, Index: i, Expires: time.Now(), Decision: decision})
	}
	ordinary := runs.Input{Run: runs.Ref{Tenant: "default", Thread: name, ID: name}, AgentRef: runs.AgentRef{Agent: name, Revision: hash}, Input: 1 << 60, Digest: hash, Continuation: runs.Continuation{Resume: waits}}
	in := runs.Input{Run: run, AgentRef: runs.AgentRef{Agent: name, Revision: hash}, Input: 1 << 60, Digest: hash, Token: name}
	for _, value := range []any{
		ordinary, runs.ParkedInput{Run: ordinary},
		in, runs.SubmitRequest{RunID: odd, Digest: hash, OnBusy: runs.OnBusyInterrupt, Offer: &in},
		runs.ModelCall{Step: step, Beginning: runs.Beginning{Input: 1 << 60, Digest: hash}},
		runs.ToolCall{Step: step, TurnStepID: step.ID, Lane: 7, LaneAfter: 1 << 60, CallID: name, MessageID: name},
		finish, answer, runs.SubmitRequest{RunID: odd, Digest: hash}, runs.ActiveRun{RunID: odd},
	} {
		if _, err := runs.DataConverter().ToPayload(value); err != nil {
			t.Errorf("payload of %T: got %v, want no error", value, err)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprintf("%+v", finish)[:200])
	}
}
