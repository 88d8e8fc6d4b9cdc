package workflows

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/runs"
)

// TestInterruptsOfNestedSubagents: interrupts of nested subagents form one list for approvers. Each subagent
// receives its own interrupts back.
func TestInterruptsOfNestedSubagents(t *testing.T) {
	t.Parallel()
	waits := func(ids ...string) *runs.Interrupts {
		set := &runs.Interrupts{MessageID: "m-" + ids[0]}
		for i, id := range ids {
			set.Items = append(set.Items, runs.Interrupt{Call: runs.Call{ID: id, Approval: &runs.Approval{}}, Index: i})
		}
		return set
	}
	by := func(agent, text string) runs.SuspendedChild {
		return runs.SuspendedChild{AgentRef: runs.AgentRef{Agent: agent}, CallID: "call-" + agent, AnswerID: text}
	}
	middle := waits("b1", "b2")
	middle.Adopt(by("deep", "m-c1"), waits("c1"))
	middle.Adopt(by("deeper", "m-d1"), waits("d1"))
	all := waits("a1")
	all.Adopt(by("other", "m-e1"), waits("e1"))
	all.Adopt(by("middle", "m-b1"), middle)

	asked := map[string]string{}
	for _, item := range all.Items {
		by := all.Source(item)
		asked[item.ID] = by.Agent + " " + by.CallID
		if by.MessageID != "m-"+item.ID[:1]+"1" {
			t.Errorf("message of the call %s: got %s, want m-%s1", item.ID, by.MessageID, item.ID[:1])
		}
	}
	want := map[string]string{
		"a1": " ", "e1": "other call-other", "b1": "middle call-middle", "b2": "middle call-middle", "c1": "deep call-deep", "d1": "deeper call-deeper",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("sources of the calls (-want +got):\n%s", diff)
	}
	for _, item := range all.Items {
		all.Find(item.ID).Decision = &runs.Decision{CallID: item.ID, Kind: runs.DecisionApprove}
	}
	for _, item := range middle.Items {
		middle.Find(item.ID).Decision = &runs.Decision{CallID: item.ID, Kind: runs.DecisionApprove}
	}
	calls := decidedCalls(all)
	if len(calls) != 3 || calls[0].id != "a1" || calls[1].id != "call-other" || calls[2].id != "call-middle" {
		t.Fatalf("decided calls: got %+v, want a1, call-other and call-middle", calls)
	}
	if diff := cmp.Diff(middle, calls[2].interrupts); diff != "" {
		t.Errorf("interrupts of the subagent (-want +got):\n%s", diff)
	}
}
