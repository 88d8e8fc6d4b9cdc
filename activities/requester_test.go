package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// TestToolsLearnForWhomTheyAct: a tool receives the run's requester and the contributors of the
// thread. Content that a model writes does not change them.
func TestToolsLearnForWhomTheyAct(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		requester *auth.Principal
		want      string
	}{
		"known":     {&auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"finance"}}, "ann"},
		"anonymous": {&auth.Principal{Tenant: "default"}, ""},
		"unknown":   {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got tools.Run
			charge := tools.Func("charge", "charges", func(ctx context.Context, _ map[string]any) (string, error) {
				got, _ = tools.RunOf(ctx)
				return "", nil
			})
			fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
				if n > 1 {
					return textAnswer("done")
				}
				return callAnswer([3]string{"x", "charge", `{"tenant":"globex","requester":"cfo"}`})
			}, charge)
			fixture.requester = tt.requester
			fixture.run("go")
			want := tools.Run{Tenant: "default", Requester: tt.want, Contributors: []string{tt.want}, Thread: "t1", ID: "r1", Agent: "a"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("run of the call (-want +got):\n%s", diff)
			}
		})
	}
}

// TestApprovalRuleReadsRequester: an approval rule may depend on the run's requester.
func TestApprovalRuleReadsRequester(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		requester      *auth.Principal
		wantInterrupts int
	}{
		"finance": {&auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"finance"}}, 0},
		"support": {&auth.Principal{Tenant: "default", Subject: "ann", Roles: []string{"support"}}, 1},
		"no role": {&auth.Principal{Tenant: "default"}, 1},
		"unknown": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
				if n > 1 {
					return textAnswer("done")
				}
				return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`})
			}, addTool())
			fixture.agent.Approvals = []agents.Approval{{Tools: []string{"add"}, When: `!("finance" in caller.roles) && caller.tenant == "default"`}}
			fixture.requester = tt.requester
			fixture.runUntilInterrupt("go")
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil || len(r.Interrupts) != tt.wantInterrupts {
				t.Errorf("interrupts: got %d, want %d (%v)", len(r.Interrupts), tt.wantInterrupts, err)
			}
		})
	}
}

// TestConditionsDoNotTrustClients: a state that the client has sent permits no call, and hides nothing
// that the agent has written.
func TestConditionsDoNotTrustClients(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		when, state    string
		wantInterrupts int
	}{
		"the client says that it is trusted":   {"!state.trusted", `{"trusted":true}`, 1},
		"the client hides a member with has()": {"has(state.trusted) ? !state.trusted : true", `{"trusted":true}`, 1},
		"the rule reads the input":             {"!input.state.trusted", `{"trusted":true}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
				if n > 1 {
					return textAnswer("done")
				}
				return callAnswer([3]string{"x", "add", `{"a":1,"b":2}`})
			}, addTool())
			fixture.agent.Approvals = []agents.Approval{{Tools: []string{"add"}, When: tt.when}}
			fixture.input.State = json.RawMessage(tt.state)
			fixture.runUntilInterrupt("go")
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil || len(r.Interrupts) != tt.wantInterrupts {
				t.Errorf("interrupts: got %d, want %d (%v)", len(r.Interrupts), tt.wantInterrupts, err)
			}
			if string(r.State) != tt.state {
				t.Errorf("state of the thread = %s, want %s", r.State, tt.state)
			}
		})
	}
}
