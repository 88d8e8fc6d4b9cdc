package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
)

// TestUnknownMembersAreDropped: members of a later AG-UI version do not make an input invalid, and
// are not part of the run.
func TestUnknownMembersAreDropped(t *testing.T) {
	t.Parallel()
	var logged output
	n := setup(t, func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	n.completeRuns()
	plain := n.post(inputOf("r1", "hello"))
	if plain.status != http.StatusOK || logged.String() != "" {
		t.Fatalf("%d %s\n%s", plain.status, plain.body, logged.String())
	}
	const odd = `{"threadId":"t","runId":"r1","protocolVersion":"1.7","later":{"a":1},"messages":[` +
		`{"id":"u-r1","role":"user","content":"hello","mood":"calm"},{"id":"x","role":"narrator","content":7}]}`
	got := n.do(http.MethodPost, "/v1/agents/a/runs", odd)
	if got.status != http.StatusConflict || got.problem.Code != "run_id_reused" { // the version differs, so it is another input
		t.Errorf("%d %s", got.status, got.body)
	}
	got = n.do(http.MethodPost, "/v1/agents/a/runs", strings.Replace(odd, "1.7", "1.0", 1))
	if got.status != http.StatusOK || got.body != plain.body {
		t.Errorf("got %d %s, want the run without the unknown members", got.status, got.body)
	}
	for _, pointer := range []string{"/messages/0/mood", "/messages/1", "/later", "/protocolVersion"} {
		if !strings.Contains(logged.String(), pointer) {
			t.Errorf("the log does not name %s: %s", pointer, logged.String())
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	n := setup(t)
	n.completeRuns()
	for version, status := range map[string]int{"1.0": 200, "1.1": 200, "1.99": 200, "1": 200, "one": 200, "": 200, "2.0": 400, "0.9": 400} {
		in := inputOf("r-"+version, "hello")
		in.ProtocolVersion = version
		if got := n.post(in); got.status != status || status == 400 && (got.problem.Code != "unsupported_protocol_version" || got.problem.Pointer != "/protocolVersion") {
			t.Errorf("version %q: %d %s", version, got.status, got.body)
		}
	}
}

// TestCapabilities: the capabilities list all features of an agent. A new feature belongs here.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	n := setup(t)
	var got struct {
		Revision     string                 `json:"revision"`
		Capabilities agui.AgentCapabilities `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(n.do(http.MethodGet, "/v1/agents/a", "").body), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Capabilities
	if string(c.Identity.Metadata["perdure.revision"]) != `"`+got.Revision+`"` || c.Identity.Name != "a" {
		t.Errorf("identity %+v", c.Identity)
	}
	if !*c.Transport.HTTPBinary || *c.Tools.Supported || *c.Tools.ParallelCalls {
		t.Errorf("transport %+v, tools %+v", c.Transport, c.Tools)
	}
	if *c.Execution.MaxIterations != 30 || *c.Execution.MaxExecutionTime != 2*60*60*1000 {
		t.Errorf("execution %+v", c.Execution)
	}
}

// TestStateOfSteps: outputs of steps are members of the state. A pipeline refuses a state that is
// not an object.
func TestStateOfSteps(t *testing.T) {
	t.Parallel()
	n := setup(t, func(c *api.Config) {
		steps := &agents.Definition{Name: "stepping", Limits: agents.DefaultLimits(), Steps: []agents.Step{agents.Set("done", []agents.Op{{Path: "/done", Value: true}})}}
		if _, err := c.Catalog.Publish(t.Context(), steps, false); err != nil {
			t.Fatal(err)
		}
	})
	n.completeRuns()
	for state, status := range map[string]int{`[1]`: 400, `"x"`: 400, `0`: 400, ` {"a":1}`: 200, `{}`: 200, `null`: 200, ``: 200} {
		for agent, want := range map[string]int{"stepping": status, "a": http.StatusOK} {
			in := inputOf("r1", "hello")
			in.ThreadID, in.State = "t-"+agent+"-"+state, json.RawMessage(state)
			got := n.postTo(agent, in)
			if got.status != want || want == 400 && (got.problem.Code != "invalid_input" || got.problem.Pointer != "/state") {
				t.Errorf("agent %s, state %s: %d %s", agent, state, got.status, got.body)
			}
		}
	}
	listed := inputOf("r1", "hello")
	listed.State = json.RawMessage(`[1]`)
	if got := n.post(listed); got.status != http.StatusOK {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := n.postTo("stepping", inputOf("r2", "hello")); got.status != http.StatusBadRequest {
		t.Errorf("a thread with a list as its state: got %d %s", got.status, got.body)
	}
}
