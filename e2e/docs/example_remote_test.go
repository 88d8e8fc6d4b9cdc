package docs

import (
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// travelServer is the server of the example remote.
type travelServer struct {
	url     string
	said    kit.Output
	process *kit.Process
}

// startTravelServer starts the server of the example remote.
func startTravelServer(t *testing.T) *travelServer {
	t.Helper()
	if err := kit.Install(filepath.Join("..", "examples", "remote")); err != nil {
		t.Fatal(err)
	}
	s := &travelServer{}
	s.start(t, "0")
	t.Cleanup(s.kill)
	return s
}

// start starts the program of the server.
func (s *travelServer) start(t *testing.T, port string) {
	t.Helper()
	cmd := exec.Command("node", filepath.Join("..", "examples", "remote", "server.mjs"), port)
	var err error
	if s.process, err = kit.Launch(t.Context(), cmd, &s.said, func(line []byte) (ok bool) {
		s.url, ok = strings.CutPrefix(string(line), "The agent is ready: ")
		return ok
	}); err != nil {
		t.Fatal(err)
	}
}

// kill kills the server.
func (s *travelServer) kill() { s.process.Kill() }

// restart kills the server and starts it at the same address.
func (s *travelServer) restart(t *testing.T) {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
	s.start(t, at.Port())
}

// TestExampleRemote: the agent of the example remote survives kills of Perdure and of its own server.
// Its question waits in the inbox, and a pipeline uses its answers.
func TestExampleRemote(t *testing.T) {
	t.Parallel()
	const runs = "/v1/agents/travel/runs"
	s := startTravelServer(t)
	p := kit.StartExample(t, "remote", "http://127.0.0.1:8092", s.url)

	// A client of each generation answers after Perdure was killed.
	for _, g := range kit.Generations {
		script := kit.Script{
			URL: p.URL(runs), ThreadID: kit.NewThread(), Messages: []kit.Message{kit.UserMessage("Book a room in Lisbon.")},
			Runs: []kit.ScriptedRun{{RunID: "r1"}},
		}
		asked := g.Drive(t, p, script)
		script.Messages = asked.Finish(t)[0].Messages
		finished := asked.Events(0, "RUN_FINISHED")
		q := kit.InterruptsOf(t, []kit.Event{{Data: finished[len(finished)-1]}})
		p.Restart(t)
		script.URL = p.URL(runs)
		script.Runs = []kit.ScriptedRun{{RunID: "r2", Parameters: map[string]any{
			"resume": []any{map[string]any{"interruptId": q[0].ID, "status": "resolved", "payload": map[string]any{"approved": false}}},
		}}}
		last := g.Drive(t, p, script).Finish(t)[0].Messages
		if got, want := last[len(last)-1].Content, "I have not booked Hotel Lisbon."; got != want {
			t.Errorf("%s: answer = %q, want %q", g.Name, got, want)
		}
	}

	for name, kill := range map[string]func(*testing.T){"Perdure": p.Restart, "the agent's server": s.restart} {
		in := kit.NewInput("Vienna")
		f := p.FollowAgent(t, "/v1/agents/trip/runs", in)
		f.UntilContent(t, 2)
		kill(t)
		f.Finish(t)
		q := kit.InterruptsOf(t, f.Events)
		if len(q) != 1 || q[0].Message != "Book Hotel Vienna for 96?" {
			t.Fatalf("%s killed: interrupts = %+v, want the question of the agent", name, q)
		}
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, q[0].ID, `{"decision":"answer","content":{"approved":true}}`); status != http.StatusOK {
			t.Fatalf("answer: got %d %v, want %d", status, a, http.StatusOK)
		}
		thread := p.FollowThread(t, in)
		q = thread.UntilInterrupt(t, "tool_call")
		if status, a := kit.Decide(t, p.Endpoint, in.ThreadID, q[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
			t.Fatalf("approve: got %d %v, want %d", status, a, http.StatusOK)
		}
		thread.UntilSuccess(t)
		const want = "I have booked Hotel Vienna for 96. In Vienna, see the tram round the Ring."
		if got := p.StateOf(t, in)["message"]; got != want {
			t.Errorf("%s killed: message = %q, want %q", name, got, want)
		}
	}
}
