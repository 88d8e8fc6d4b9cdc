package models

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

const fallingAgent = `name: falling
model: [anthropic/claude-sonnet-5-5, openai/gpt-5]
instructions: You are under test.
tools: [calculate]
limits: {turns: 4}
`

// startFalling starts a process with an agent that has two models, behind a gate.
func startFalling(t *testing.T, g *gate, env ...string) *kit.Perdure {
	t.Helper()
	dir := t.TempDir()
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Agents = filepath.Join(dir, "agents")
	if err := os.Mkdir(p.Agents, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Agents, "falling.yaml"), []byte(fallingAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(g.environ(), env...)
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// TestFallback: whatever a model server does, the model of another provider continues the turn: what the
// first one has streamed is withdrawn, its reasoning is not sent to the other one, and the trace and the
// usage have the model of each attempt.
func TestFallback(t *testing.T) {
	t.Parallel()
	failures := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"overloaded":  func(w http.ResponseWriter, _ *http.Request) bool { return refuse(w, 529, "") },
		"rate limit":  func(w http.ResponseWriter, _ *http.Request) bool { return refuse(w, 429, "") },
		"no key":      func(w http.ResponseWriter, _ *http.Request) bool { return refuse(w, 401, "") },
		"no model":    func(w http.ResponseWriter, _ *http.Request) bool { return refuse(w, 404, "") },
		"no answer":   func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"broken":      func(w http.ResponseWriter, _ *http.Request) bool { return cut(w, "") },
		"broken late": func(w http.ResponseWriter, _ *http.Request) bool { return cut(w, halfAnswer) },
	}
	g := startGate(t)
	p := startFalling(t, g, "PERDURE_MODEL_SILENCE=1s")
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prompt, thought, answer := kit.Marked("Calculate: "+name+"."), kit.Marked("Hm."), kit.Marked("42.")
			g.on(prompt, func(w http.ResponseWriter, r *http.Request, provider string, n int) bool {
				return provider == "anthropic" && n == 2 && fail(w, r)
			})
			no, yes := false, true
			kit.SharedModel.Answer(t,
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &no}, Response: kit.Response{Reasoning: thought, ToolCalls: []kit.ModelCall{{ID: "a", Name: "calculate", Arguments: `{"expression":"6*7"}`}}}},
				kit.Fixture{Match: kit.Match{UserMessage: prompt, HasToolResult: &yes}, Response: kit.Response{Content: answer}})
			in := kit.NewInput(prompt)
			events := p.PostAgent(t, "/v1/agents/falling/runs", in)
			if kit.Outcome(events[len(events)-1]) != "success" {
				t.Fatalf("end of the run = %s, want success", events[len(events)-1].Data)
			}
			if got, want := g.providers(prompt), "anthropic anthropic openai"; got != want {
				t.Errorf("requests = %s, want %s", got, want)
			}
			messages := p.MessagesOf(t, in.ThreadID)
			if last := messages[len(messages)-1]; last.Content != answer {
				t.Errorf("answer = %v, want %s", last, answer)
			}
			all := g.with(prompt)
			if first := all[1].body; !strings.Contains(first, "signature") {
				t.Errorf("second request of the first provider = %s, want its own reasoning", first)
			}
			if fallback := all[len(all)-1].body; strings.Contains(fallback, "signature") || strings.Contains(fallback, thought) {
				t.Errorf("request of the other provider = %s, want no reasoning of the first one", fallback)
			}
			wantModels(t, p.Endpoint, in, "anthropic/claude-sonnet-5-5", "openai/gpt-5")
		})
	}
}

// wantModels checks the models that the attempts at the last model call of a run have called. Attempts that
// a Retry-After held back have called none.
func wantModels(t *testing.T, p *kit.Endpoint, in kit.Input, want ...string) {
	t.Helper()
	var trace struct {
		Spans []struct {
			Kind     string
			Model    string
			Attempts []struct {
				Model string
				Error struct{ Code string }
			}
		}
	}
	p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/trace", &trace)
	var got []string
	model := ""
	for _, s := range trace.Spans {
		if s.Kind != "model" {
			continue
		}
		got, model = nil, s.Model
		for _, a := range s.Attempts {
			if a.Error.Code != "provider_busy" {
				got = append(got, a.Model)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || model != want[len(want)-1] {
		t.Errorf("model of the span = %s, models of its attempts (-want +got):\n%s", model, diff)
	}
}

// halfAnswer is the beginning of a stream of Anthropic's API.
var halfAnswer = sse("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`) +
	sse("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
	sse("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`+kit.Mark+` half"}}`)

// sse returns an event of a stream.
func sse(event, data string) string { return fmt.Sprintf("event: %s\ndata: %s\n\n", event, data) }

// cut sends the beginning of a stream, and closes the connection.
func cut(w http.ResponseWriter, beginning string) bool {
	w.Header().Set("Content-Type", "text/event-stream")
	if beginning != "" {
		_, _ = io.WriteString(w, beginning)
		_ = http.NewResponseController(w).Flush()
	}
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
	return true
}

// TestKillKeepsFallback: a process that is killed between a failure and the next attempt, or while the
// second model answers, continues with the same model.
func TestKillKeepsFallback(t *testing.T) {
	t.Parallel()
	prompt, answer := kit.Marked("Say."), kit.Marked("Said.")
	second := make(chan struct{}) // the second model is called
	g := startGate(t)
	g.on(prompt, func(w http.ResponseWriter, r *http.Request, provider string, n int) bool {
		switch {
		case provider == "anthropic" && n <= 2:
			return refuse(w, 429, "10")
		case provider == "openai" && n == 1:
			close(second)
			<-r.Context().Done()
			return true
		case provider == "openai" && n == 2:
			return refuse(w, 429, "10")
		}
		return false
	})
	kit.SharedModel.AnswerWith(t, prompt, answer)
	p := startFalling(t, g)
	in := kit.NewInput(prompt)
	f := p.NewFollower(t, in)
	f.Agent = "/v1/agents/falling/runs"
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	await(t, second)
	p.Kill()
	p.Start(t)
	// The second model is called again and refuses, and the first one follows after ten seconds: the
	// kill is before that, also on a busy machine.
	awaitAttempts(t, p.Endpoint, in, 3)
	p.Kill()
	p.Start(t)
	f.Finish(t)
	if got, want := g.providers(prompt), "anthropic openai openai anthropic openai"; got != want {
		t.Errorf("requests = %s, want %s", got, want)
	}
	wantModels(t, p.Endpoint, in, "anthropic/claude-sonnet-5-5", "openai/gpt-5", "openai/gpt-5", "anthropic/claude-sonnet-5-5", "openai/gpt-5")
}

// await waits until a channel is closed.
func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(kit.WaitTimeout):
		t.Fatal("it has not happened in time")
	}
}

// awaitAttempts waits until n attempts of the last model call have failed.
func awaitAttempts(t *testing.T, p *kit.Endpoint, in kit.Input, n int) {
	t.Helper()
	deadline := time.Now().Add(kit.WaitTimeout)
	for {
		var trace struct {
			Spans []struct {
				Kind     string
				Attempts []struct{ Status string }
			}
		}
		p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID+"/trace", &trace)
		failed := 0
		for _, s := range trace.Spans {
			if s.Kind != "model" {
				continue
			}
			failed = 0
			for _, a := range s.Attempts {
				if a.Status == "failed" {
					failed++
				}
			}
		}
		if failed >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("failed attempts = %d, want %d", failed, n)
		}
		<-time.After(10 * time.Millisecond) // poll interval
	}
}
