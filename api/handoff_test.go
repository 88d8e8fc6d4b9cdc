package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// publishAgents publishes more agents on a node.
func publishAgents(t *testing.T, all ...*agents.Definition) func(*api.Config) {
	return func(c *api.Config) {
		for _, d := range all {
			d.Limits = agents.DefaultLimits()
			if _, err := c.Catalog.Publish(t.Context(), d, false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// handOffRuns makes started runs of an agent hand off their thread to another agent. All runs end,
// unless their workflows die first.
func (n *node) handOffRuns(from, to string, dies bool) {
	n.temporal.start = func(in runs.Input) error {
		p := stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: "e-" + in.Run.ID}
		var err error
		if p.After, err = n.snapshots.OpenRun(n.ctx(), p, stream.Opening{Agent: in.Agent, Revision: in.Revision, Input: in.Input, Digest: in.Digest}); err != nil {
			return err
		}
		if in.Agent == from {
			call := p
			call.Lane, call.Step, call.After = stream.LaneMain.Tool(0), "1/tools/0", 0
			a, _, err := n.log.Begin(n.ctx(), call)
			if err != nil {
				return err
			}
			defer a.Close()
			if _, err := a.Finish(n.ctx(), &stream.Result{Handoff: &stream.Handoff{From: from, To: to}}); err != nil {
				return err
			}
		}
		if dies {
			return nil
		}
		_, _, err = n.log.Seal(n.ctx(), p, &agui.RunFinished{ThreadID: in.Run.Thread, RunID: in.Run.ID})
		return err
	}
}

// postToAgent posts a run to an agent, and returns the agent whose run begins.
func (n *node) postToAgent(agent, thread, run string) string {
	n.t.Helper()
	in := inputOf(run, "said in "+run)
	in.ThreadID, in.ForwardedProps = thread, json.RawMessage(`{"perdure":{"history":"append"}}`)
	body, err := json.Marshal(in)
	if err != nil {
		n.t.Fatal(err)
	}
	a := n.do(http.MethodPost, "/v1/agents/"+agent+"/runs", string(body))
	a.mustStatus(n.t, fmt.Sprintf("POST to %s: status", agent), http.StatusOK)
	n.temporal.mu.Lock()
	defer n.temporal.mu.Unlock()
	last := n.temporal.starts[len(n.temporal.starts)-1]
	if last.Run.ID != run {
		n.t.Fatalf("last run: got %s, want %s", last.Run.ID, run)
	}
	return last.Agent + " " + string(last.OnNewInput)
}

// TestRunsAfterHandoff: after a handoff, an input for the first agent goes to the agent that has
// the thread. This holds for that thread only, until a client names a third agent.
func TestRunsAfterHandoff(t *testing.T) {
	t.Parallel()
	b, c := &agents.Definition{Name: "b", Model: "test/m", OnNewInput: "queue"}, &agents.Definition{Name: "c", Model: "test/m"}
	node := setup(t, publishAgents(t, b, c))
	node.handOffRuns("a", "b", false)
	for i, ask := range []struct{ agent, thread, want string }{
		{"a", "t", "a "}, {"a", "t", "b queue"}, {"b", "t", "b queue"}, {"a", "other", "a "}, {"a", "t", "b queue"}, {"c", "t", "c "}, {"a", "t", "a "}, {"a", "t", "b queue"},
	} {
		if got := node.postToAgent(ask.agent, ask.thread, "r"+string(rune('a'+i))); got != ask.want {
			t.Errorf("%d: agent %s on %s: got %q, want %q", i, ask.agent, ask.thread, got, ask.want)
		}
	}
	var summary struct {
		Agent string `json:"agent"`
	}
	if node.get("/v1/threads/t", &summary); summary.Agent != "b" {
		t.Errorf("agent of the thread: got %s, want b", summary.Agent)
	}
}

// TestHandoffOfTerminatedRun: the list has the target agent of a handoff even if the
// workflow died after the handoff.
func TestHandoffOfTerminatedRun(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), publishAgents(t, &agents.Definition{Name: "b", Model: "test/m"}))
	node.handOffRuns("a", "b", true)
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil
	}
	node.postToAgent("a", "t", "r1")
	node.awaitList("?agent=b&status=failed", "t failed")
}

// TestCapabilitiesListHandoffs: an agent's capabilities declare its handoffs, and list target
// agents that do not exist.
func TestCapabilitiesListHandoffs(t *testing.T) {
	t.Parallel()
	b := &agents.Definition{Name: "b", Model: "test/m", Tools: []string{"handoff:a", "handoff:nobody"}}
	node := setup(t, publishAgents(t, b))
	a := node.do(http.MethodGet, "/v1/agents/b", "")
	for _, want := range []string{`"multiAgent":{"supported":true,"delegation":false,"handoffs":true}`, `"unavailableTools":["handoff:nobody"]`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("body = %q, want text with %q", a.body, want)
		}
	}
}
