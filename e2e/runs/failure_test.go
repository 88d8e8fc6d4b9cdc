package runs

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestModelRefuses: a permanent error of the model ends the run with a code and without the
// provider's text.
func TestModelRefuses(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{400: "invalid_request", 401: "unauthorized", 404: "not_found"} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				question := kit.UserMessage(kit.Marked("May I?"))
				kit.SharedModel.AnswerInOrder(t, question.Content, kit.ErrorAnswer(status))
				d, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}})
				kit.WantMessages(t, []kit.Message{question}, ends[0].Messages)
				errors := d.Events(0, "RUN_ERROR")
				if len(errors) != 1 {
					t.Fatalf("events %s, want RUN_ERROR", d.Types(0))
				}
				if got := (kit.Event{Data: errors[0]}).Member("code"); got != code {
					t.Errorf("code %q, want %q: %s", got, code, errors[0])
				}
				if n := len(kit.SharedModel.Calls(t, question.Content)); n != 1 {
					t.Errorf("%d model calls, want 1", n)
				}
			})
		})
	}
}

// TestModelRecovers: a temporary error is retried in the same run, and clients see the attempt that
// succeeds.
func TestModelRecovers(t *testing.T) {
	t.Parallel()
	breaksOff := kit.SlowAnswer(kit.LongText(400))
	breaksOff.TruncateAfterChunks = 8
	for name, first := range map[string]kit.Fixture{
		"server error": kit.ErrorAnswer(500),
		"overloaded":   kit.ErrorAnswer(503),
		"breaks off":   breaksOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
				question, answer := kit.UserMessage(kit.Marked("Please.")), kit.Marked("All right.")
				kit.SharedModel.AnswerInOrder(t, question.Content, first, kit.FastAnswer(answer))
				d, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Messages: []kit.Message{question}})
				kit.WantMessages(t, []kit.Message{question, kit.AssistantMessage(answer)}, ends[0].Messages)
				kit.WantMessages(t, []kit.Message{kit.AssistantMessage(answer)}, ends[0].NewMessages)
				if len(d.Events(0, "RUN_FINISHED")) != 1 {
					t.Errorf("events = %s, want one RUN_FINISHED", d.Types(0))
				}
				if n := len(kit.SharedModel.Calls(t, question.Content)); n != 2 {
					t.Errorf("%d model calls, want 2", n)
				}
			})
		})
	}
}

// TestFollowUpAfterFailure: a thread takes the next run after a failed one.
func TestFollowUpAfterFailure(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		first, second, answer := kit.UserMessage(kit.Marked("May I?")), kit.UserMessage(kit.Marked("And now?")), kit.Marked("Now you may.")
		kit.SharedModel.AnswerInOrder(t, first.Content, kit.ErrorAnswer(400))
		kit.SharedModel.AnswerWith(t, second.Content, answer)
		_, ends := g.Run(t, kit.Shared, kit.ScriptedRun{RunID: "run-1", Add: []kit.Message{first}}, kit.ScriptedRun{RunID: "run-2", Add: []kit.Message{second}})
		kit.WantMessages(t, []kit.Message{first, second, kit.AssistantMessage(answer)}, ends[1].Messages)
	})
}

// TestLimits: a model that does not stop is ended by a limit, which the code names.
func TestLimits(t *testing.T) {
	t.Parallel()
	for code, calls := range map[string]int{"limit_turns": 1, "limit_parallel_tools": 9} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			in := kit.NewInput(kit.Marked("On and on."))
			again := slices.Repeat([]kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"1"}`}}, calls)
			kit.SharedModel.Answer(t, kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content}, Response: kit.Response{ToolCalls: again}})
			all := kit.Shared.Run(t, in)
			kit.ShownMessages(t, in.Messages, all)
			if last := all[len(all)-1]; last.Type != "RUN_ERROR" || last.Member("code") != code {
				t.Errorf("end of the run = %s, want RUN_ERROR %s", last.Data, code)
			}
		})
	}
}

// TestDeadModelServer: if the model server is not reachable, a run of "perdure dev" ends with its
// first attempt. The error names the server, the reason and what to check.
func TestDeadModelServer(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_API_KEY=sk-secret-12345678"}
	p.InspectAtEnd(t)
	p.Start(t)
	in := kit.NewInput(kit.Marked("Is anybody there?"))
	f := p.Follow(t, in)
	f.Finish(t)
	last := f.Events[len(f.Events)-1]
	if last.Type != "RUN_ERROR" || last.Member("code") != "unavailable" {
		t.Fatalf("end of the run = %s, want unavailable", last.Data)
	}
	message := last.Member("message")
	for _, want := range []string{"openai/", "at 127.0.0.1:1", "connection refused", "check OPENAI_BASE_URL"} {
		if !strings.Contains(message, want) {
			t.Errorf("message: want text with %q, got %s", want, message)
		}
	}
	log := p.Output.String()
	if strings.Contains(message, "attempt") || strings.Count(log, "a model call failed") != 1 || !strings.Contains(log, "a model call failed and will not be attempted again") {
		t.Errorf("message = %s, want one attempt", message)
	}
	if strings.Contains(message+log, "sk-secret-12345678") {
		t.Error("error has the key, want it left out")
	}
}

// TestMisspelledNames: a misspelled tool name stops "perdure dev" at its start. A name that another
// worker may have (--known) does not.
func TestMisspelledNames(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	file := filepath.Join(p.Agents, "clerk.yaml")
	if err := os.WriteFile(file, []byte("name: clerk\nmodel: scripted/demo\ntools: [calculat, \"agent:nobody\", \"client:*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := p.Launch(t.Context())
	for _, want := range []string{file + `:3: /tools/0: unknown tool "calculat" (did you mean "calculate"?)`, file + `:3: /tools/1: unknown agent "nobody"`, "--known"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	// The run reports at once which tool is missing, and waits.
	p = kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Flags, p.Env = filepath.Dir(file), []string{"--known", "calculat,nobody"}, []string{"PERDURE_TOOL_GRACE=3s"}
	p.InspectAtEnd(t)
	p.Start(t)
	f := p.FollowAgent(t, "/v1/agents/clerk/runs", kit.NewInput(kit.Marked("What is 1+1?")))
	f.Until(t, kit.IsCustom)
	if notice := f.Events[len(f.Events)-1]; notice.Member("name") != "perdure.toolUnavailable" || !strings.Contains(string(notice.Data), `unknown tool \"calculat\"`) {
		t.Errorf("notice = %s, want the missing tool", notice.Data)
	}
	f.Finish(t)
	if last := f.Events[len(f.Events)-1]; last.Member("code") != "tool_unavailable" || !strings.Contains(last.Member("message"), `unknown tool "calculat"`) {
		t.Errorf("end of the run = %s, want tool_unavailable with the missing tool", last.Data)
	}
}

// TestUnpublishedAgents: a run whose agent names one that is not published fails at once, and says
// which. It does not wait, as for a tool that a worker may bring.
func TestUnpublishedAgents(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Flags, p.Env = t.TempDir(), []string{"--known", "nobody"}, []string{"PERDURE_TOOL_GRACE=1h"}
	for name, rest := range map[string]string{
		"chief":  "model: scripted/demo\ntools: [\"agent:nobody\"]\n",
		"desk":   "model: scripted/demo\ntools: [\"handoff:nobody\"]\n",
		"editor": "steps:\n  - {name: draft, agent: nobody}\n",
	} {
		if err := os.WriteFile(filepath.Join(p.Agents, name+".yaml"), []byte("name: "+name+"\n"+rest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.InspectAtEnd(t)
	p.Start(t)
	for _, name := range []string{"chief", "desk", "editor"} {
		f := p.FollowAgent(t, "/v1/agents/"+name+"/runs", kit.NewInput(kit.Marked("What is 1+1?")))
		f.Finish(t)
		if last := f.Events[len(f.Events)-1]; last.Member("code") != "agent_unavailable" || !strings.Contains(last.Member("message"), `unknown agent "nobody"`) {
			t.Errorf("end of the run of %s = %s, want agent_unavailable with the missing agent", name, last.Data)
		}
	}
}
