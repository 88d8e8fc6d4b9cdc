package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fails(status int) fixture {
	return fixture{Response: response{Status: status, Error: &modelError{Message: say("the model refuses"), Type: "some_error"}}}
}

// answers is text that comes fast, pours is text that comes slowly: about 40 pieces a second.
func answers(text string) fixture { return fixture{Response: response{Content: text}} }

func pours(text string) fixture {
	return fixture{Response: response{Content: text}, ChunkSize: 8, Latency: 25}
}

// What the model refuses for good ends the run, with a code and without the model's words.
func TestModelRefuses(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]string{400: "invalid_request", 401: "unauthorized", 404: "not_found"} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				question := user(say("May I?"))
				sharedModel.attempts(t, question.Content, fails(status))
				d, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Messages: []message{question}})
				wantMessages(t, []message{question}, ends[0].Messages)
				errors := d.events(0, "RUN_ERROR")
				if len(errors) != 1 {
					t.Fatalf("events %s, want RUN_ERROR", d.types(0))
				}
				if got := (event{Data: errors[0]}).member("code"); got != code {
					t.Errorf("code %q, want %q: %s", got, code, errors[0])
				}
				if n := len(sharedModel.calls(t, question.Content)); n != 1 {
					t.Errorf("%d model calls, want 1", n)
				}
			})
		})
	}
}

// What may pass is tried again, by the same run, and clients see the attempt that succeeds.
func TestModelRecovers(t *testing.T) {
	t.Parallel()
	breaksOff := pours(long(400))
	breaksOff.TruncateAfterChunks = 8
	for name, first := range map[string]fixture{
		"server error": fails(500),
		"overloaded":   fails(503),
		"breaks off":   breaksOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, g generation) {
				question, answer := user(say("Please.")), say("All right.")
				sharedModel.attempts(t, question.Content, first, answers(answer))
				d, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Messages: []message{question}})
				wantMessages(t, []message{question, says(answer)}, ends[0].Messages)
				wantMessages(t, []message{says(answer)}, ends[0].NewMessages)
				if len(d.events(0, "RUN_FINISHED")) != 1 {
					t.Errorf("events %s", d.types(0))
				}
				if n := len(sharedModel.calls(t, question.Content)); n != 2 {
					t.Errorf("%d model calls, want 2", n)
				}
			})
		})
	}
}

// A thread goes on after a run that failed.
func TestFollowUpAfterFailure(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, g generation) {
		first, second, answer := user(say("May I?")), user(say("And now?")), say("Now you may.")
		sharedModel.attempts(t, first.Content, fails(400))
		sharedModel.answerWith(t, second.Content, answer)
		_, ends := g.talk(t, shared, scriptedRun{RunID: "run-1", Add: []message{first}}, scriptedRun{RunID: "run-2", Add: []message{second}})
		wantMessages(t, []message{first, second, says(answer)}, ends[1].Messages)
	})
}

// A model that never comes to an end is stopped by the limit, which the code names.
func TestLimits(t *testing.T) {
	t.Parallel()
	for code, calls := range map[string]int{"limit_turns": 1, "limit_parallel_tools": 9} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			in := newInput(say("On and on."))
			again := slices.Repeat([]modelCall{{Name: "calculate", Arguments: `{"expression":"1"}`}}, calls)
			sharedModel.answer(t, fixture{Match: match{UserMessage: in.Messages[0].Content}, Response: response{ToolCalls: again}})
			all := shared.run(t, in)
			show(t, in.Messages, all)
			if last := all[len(all)-1]; last.Type != "RUN_ERROR" || last.member("code") != code {
				t.Errorf("it ended with %s", last.Data)
			}
		})
	}
}

// A model server that is not there ends a run of "perdure dev" with its first attempt, and says
// which server, why, and what to check.
func TestDeadModelServer(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.env = []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_API_KEY=sk-secret-12345678"}
	p.keep(t)
	p.start(t)
	in := newInput(say("Is anybody there?"))
	f := p.follow(t, in)
	f.finish(t)
	last := f.events[len(f.events)-1]
	if last.Type != "RUN_ERROR" || last.member("code") != "unavailable" {
		t.Fatalf("the run ends with %s", last.Data)
	}
	message := last.member("message")
	for _, want := range []string{"openai/", "at 127.0.0.1:1", "connection refused", "check OPENAI_BASE_URL"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q: %s", want, message)
		}
	}
	log := p.output.String()
	if strings.Contains(message, "attempt") || strings.Count(log, "a model call failed") != 1 || !strings.Contains(log, "a model call failed for good") {
		t.Errorf("the call was attempted again: %s", message)
	}
	if strings.Contains(message+log, "sk-secret-12345678") {
		t.Error("the key is told")
	}
}

// A misspelled name ends "perdure dev" when it starts, and a name that another worker may have does
// not.
func TestMisspelledNames(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents = t.TempDir()
	file := filepath.Join(p.agents, "clerk.yaml")
	if err := os.WriteFile(file, []byte("name: clerk\nmodel: scripted/demo\ntools: [calculat, \"agent:nobody\", \"client:*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := p.launch(t.Context())
	for _, want := range []string{file + `:3: /tools/0: unknown tool "calculat" (did you mean "calculate"?)`, file + `:3: /tools/1: unknown agent "nobody"`, "--known"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}

	// The run says at once what it lacks, and waits.
	p = newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents, p.flags, p.env = filepath.Dir(file), []string{"--known", "calculat,nobody"}, []string{"PERDURE_TOOL_GRACE=3s"}
	p.keep(t)
	p.start(t)
	f := p.followAgent(t, "/v1/agents/clerk/runs", newInput(say("What is 1+1?")))
	f.until(t, isCustom)
	if notice := f.events[len(f.events)-1]; notice.member("name") != "perdure.toolUnavailable" || !strings.Contains(string(notice.Data), `unknown tool \"calculat\"`) {
		t.Errorf("the run says %s", notice.Data)
	}
	f.finish(t)
	if last := f.events[len(f.events)-1]; last.member("code") != "tool_unavailable" || !strings.Contains(last.member("message"), `unknown tool "calculat"`) {
		t.Errorf("the run ends with %s", last.Data)
	}
}
