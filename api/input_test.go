package api_test

import (
	"encoding/json"
	"fmt"
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
	node := setup(t, func(c *api.Config) { c.Logger = slog.New(slog.NewTextHandler(&logged, nil)) })
	node.completeRuns()
	plain := node.post(inputOf("r1", "hello"))
	mustEqual(t, "status", plain.status, http.StatusOK)
	mustEqual(t, "log", logged.String(), "")
	const odd = `{"threadId":"t","runId":"r1","protocolVersion":"1.7","later":{"a":1},"messages":[` +
		`{"id":"u-r1","role":"user","content":"hello","mood":"calm"},{"id":"x","role":"narrator","content":7}]}`
	got := node.do(http.MethodPost, "/v1/agents/a/runs", odd)
	got.wantStatus(t, "status", http.StatusConflict)
	wantEqual(t, "problem code", got.problem.Code, "run_id_reused")
	got = node.do(http.MethodPost, "/v1/agents/a/runs", strings.Replace(odd, "1.7", "1.0", 1))
	if got.status != http.StatusOK || got.body != plain.body {
		t.Errorf("got %d %s, want the run without the unknown members", got.status, got.body)
	}
	for _, pointer := range []string{"/messages/0/mood", "/messages/1", "/later", "/protocolVersion"} {
		if !strings.Contains(logged.String(), pointer) {
			t.Errorf("log of %s = %q, want text with %q", pointer, logged.String(), pointer)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	for version, status := range map[string]int{"1.0": 200, "1.1": 200, "1.99": 200, "1": 200, "one": 200, "": 200, "2.0": 400, "0.9": 400} {
		in := inputOf("r-"+version, "hello")
		in.ProtocolVersion = version
		got := node.post(in)
		got.wantStatus(t, fmt.Sprintf("version %q: status", version), status)
		if status == 400 && (got.problem.Code != "unsupported_protocol_version" || got.problem.Pointer != "/protocolVersion") {
			t.Errorf("version %q: got %d %s, want unsupported_protocol_version", version, got.status, got.body)
		}
	}
}

// TestCapabilities: the capabilities list all features of an agent. A new feature belongs here.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	node := setup(t)
	var got struct {
		Revision     string                 `json:"revision"`
		Capabilities agui.AgentCapabilities `json:"capabilities"`
	}
	if err := json.Unmarshal([]byte(node.do(http.MethodGet, "/v1/agents/a", "").body), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Capabilities
	wantEqual(t, "revision of the agent", string(c.Identity.Metadata["perdure.revision"]), `"`+got.Revision+`"`)
	wantEqual(t, "name of the agent", c.Identity.Name, "a")
	mustEqual(t, "capability of binary events", *c.Transport.HTTPBinary, true)
	wantEqual(t, "capability of client tools", *c.Tools.Supported, false)
	wantEqual(t, "capability of parallel calls", *c.Tools.ParallelCalls, false)
	mustEqual(t, "maximum number of iterations", *c.Execution.MaxIterations, 30)
	wantEqual(t, "maximum time in ms", *c.Execution.MaxExecutionTime, 2*60*60*1000)
}

// TestStateOfSteps: outputs of steps are members of the state. A pipeline refuses a state that is
// not an object.
func TestStateOfSteps(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) {
		steps := &agents.Definition{Name: "stepping", Limits: agents.DefaultLimits(), Steps: []agents.Step{agents.Set("done", []agents.Op{{Path: "/done", Value: true}})}}
		if _, err := c.Catalog.Publish(t.Context(), steps, false); err != nil {
			t.Fatal(err)
		}
	})
	node.completeRuns()
	for state, status := range map[string]int{`[1]`: 400, `"x"`: 400, `0`: 400, ` {"a":1}`: 200, `{}`: 200, `null`: 200, ``: 200} {
		for agent, want := range map[string]int{"stepping": status, "a": http.StatusOK} {
			in := inputOf("r1", "hello")
			in.ThreadID, in.State = "t-"+agent+"-"+state, json.RawMessage(state)
			got := node.postTo(agent, in)
			got.wantStatus(t, fmt.Sprintf("agent %s, state %s: status", agent, state), want)
			if want == 400 && (got.problem.Code != "invalid_input" || got.problem.Pointer != "/state") {
				t.Errorf("agent %s, state %s: got %d %s, want invalid_input with the pointer /state", agent, state, got.status, got.body)
			}
		}
	}
	for state, status := range map[string]int{`{"perdure.steps":[1]}`: 400, `{"perdure.steps":null}`: 400, `{"perdure.steps":{"done":1},"steps":[1]}`: 200} {
		in := inputOf("r1", "hello")
		in.ThreadID, in.State = "t-outputs-"+state, json.RawMessage(state)
		got := node.postTo("stepping", in)
		got.wantStatus(t, "state "+state, status)
		if status == 400 && got.problem.Pointer != "/state/perdure.steps" {
			t.Errorf("state %s: got %d %s, want the pointer /state/perdure.steps", state, got.status, got.body)
		}
	}
	listed := inputOf("r1", "hello")
	listed.State = json.RawMessage(`[1]`)
	if got := node.post(listed); got.status != http.StatusOK {
		t.Fatalf("status = %v, want %v; body: %s", got.status, http.StatusOK, got.body)
	}
	if got := node.postTo("stepping", inputOf("r2", "hello")); got.status != http.StatusBadRequest {
		t.Errorf("thread with a list as its state: status = %v, want %v; body: %s", got.status, http.StatusBadRequest, got.body)
	}
}
