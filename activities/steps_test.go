package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// callJournal is a tool that records its calls, and fails when a call asks for it. It is safe for
// concurrent use.
type callJournal struct {
	mu    sync.Mutex
	notes []string
}

type journalEntry struct {
	Note string `json:"note"`
	Fail bool   `json:"fail,omitempty"`
}

// tool returns the tool that writes the journal.
func (j *callJournal) tool() tools.Tool {
	return tools.Func("note", "notes", func(_ context.Context, in journalEntry) (string, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.notes = append(j.notes, in.Note)
		if in.Fail {
			return "", errors.New("it fails")
		}
		return in.Note, nil
	})
}

// wantEntries checks the entries of the journal, in their order.
func (j *callJournal) wantEntries(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.notes, want) {
		t.Errorf("notes: got %q, want %q", j.notes, want)
	}
}

// wantEntriesInAnyOrder is want for notes in any order.
func (j *callJournal) wantEntriesInAnyOrder(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	slices.Sort(j.notes)
	j.mu.Unlock()
	slices.Sort(want)
	j.wantEntries(t, want...)
}

// setupPipeline returns a fixture whose agent consists of steps, with the journal as its tool.
func setupPipeline(t *testing.T, s script, steps string) (*fixture, *callJournal) {
	t.Helper()
	j := &callJournal{}
	fixture := setup(t, s, j.tool())
	fixture.agent = parseDefinition(t, "name: a\nmodel: test/m\ntools: [note]\nsteps:\n"+steps)
	return fixture, j
}

// parseDefinition returns the definition of an agent in YAML.
func parseDefinition(t *testing.T, text string) *agents.Definition {
	t.Helper()
	d, err := agents.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// echoModel repeats the model's last message. It fails permanently if that contains "fail".
func echoModel(_ int, req *llm.Request) ([]llm.Chunk, error) {
	message := req.Messages[len(req.Messages)-1].Text()
	if strings.Contains(message, "fail") {
		chunks, _ := textAnswer("no: " + message)
		return chunks[:1], &llm.Error{Code: llm.CodeInvalidRequest, Message: "no luck"}
	}
	return textAnswer("re " + message)
}

// threadState returns the thread's state.
func (f *fixture) threadState() string {
	f.t.Helper()
	r, err := f.acts.Snapshots.Latest(f.t.Context(), run.Thread, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(r.State)
}

// wantState checks the state of the thread.
func (f *fixture) wantState(want string) {
	f.t.Helper()
	if got := f.threadState(); got != want {
		f.t.Errorf("state: got\n%s, want\n%s", got, want)
	}
}

// failureOf returns the code that a run ended with.
func failureOf(events []agui.Event) string {
	if failed, ok := events[len(events)-1].(*agui.RunError); ok {
		return failed.Code
	}
	return ""
}

// stepsCases are pipelines, with the ends of their runs.
var stepsCases = map[string]struct {
	steps     string
	model     script
	wantState string
	wantNotes []string
	wantCode  string
}{
	"an agent that fails, with onError: continue": {
		steps: `
  - {name: one, agent: {}, input: "please fail", onError: continue}
  - {name: two, agent: {}, input: "after ${steps.one.error.code}"}`,
		wantState: `{"perdure.steps":{"one":{"error":{"code":"invalid_request","message":"step \"one\": the model call failed: invalid_request: test/m: no luck"}},"two":"re after invalid_request"}}`,
	},
	"a provider that no worker has": {
		steps: `
  - {name: one, agent: {model: nobody/large}, input: "x", onError: continue}`,
		wantState: `{"perdure.steps":{"one":{"error":{"code":"not_found","message":"step \"one\": the model call failed: not_found: nobody/large: no worker has the model provider \"nobody\""}}}}`,
	},
	"a model that its provider does not know": {
		steps: `
  - {name: one, agent: {}, input: "x", onError: continue}`,
		model: func(int, *llm.Request) ([]llm.Chunk, error) {
			return nil, &llm.Error{Code: llm.CodeNotFound, Status: 404, Message: "of the provider's own"}
		},
		wantState: `{"perdure.steps":{"one":{"error":{"code":"not_found","message":"step \"one\": the model call failed: not_found (HTTP 404): test/m: of the provider's own"}}}}`,
	},
	"an agent that fails in a later turn": {
		steps: `
  - {name: one, agent: {tools: [note]}, input: "go on", onError: continue}
  - {name: two, tool: note, args: {note: "${steps.one.error.code}"}}`,
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return callAnswer([3]string{"x", "note", `{"note":"turn"}`})
			}
			return echoModel(n, &llm.Request{Messages: []llm.Message{{Parts: []llm.Part{llm.Text{Text: "fail"}}}}})
		},
		wantNotes: []string{"turn", "invalid_request"},
		wantState: `{"perdure.steps":{"one":{"error":{"code":"invalid_request","message":"step \"one\": the model call failed: invalid_request: test/m: no luck"}},"two":"invalid_request"}}`,
	},
	"compensation uses the values at the time of the step": {
		steps: `
  - {name: lines, set: {/lines: [a, b], /n: 1}}
  - name: rounds
    loop:
      max: 2
      steps:
        - name: all
          map:
            items: state.lines
            concurrency: 1
            steps:
              - {name: take, tool: note, args: {note: "take ${item} ${state.n}"}, compensate: {tool: note, args: {note: "give ${item}, ${steps.take}"}}}
              - {name: parts, map: {items: "[item]", as: part, steps: [{name: cut, tool: note, args: {note: "cut ${part}"}, compensate: {tool: note, args: {note: "join ${part}"}}}]}}
        - {name: others, set: {/lines: [c], /n: 2}}
  - {name: last, tool: note, args: {note: "last", fail: true}}`,
		wantNotes: []string{
			"take a 1", "cut a", "take b 1", "cut b", "take c 2", "cut c", "last",
			"join c", "give c, take c 2", "join a", "give a, take a 1", "join b", "give b, take b 1",
		},
		wantCode: "tool_failed",
	},
	"an agent that uses more than it may": {
		steps: `
  - {name: one, agent: {tools: [note], limits: {tokens: 5}}, input: "go on", onError: continue}
  - {name: two, agent: {tools: [note]}, input: "after ${steps.one.error.code}"}`,
		model: func(n int, req *llm.Request) ([]llm.Chunk, error) {
			chunks, err := echoModel(n, req)
			if n == 1 {
				chunks, err = callAnswer([3]string{"x", "note", `{"note":"never"}`})
			}
			chunks[len(chunks)-1] = llm.Finish{Reason: chunks[len(chunks)-1].(llm.Finish).Reason, Usage: llm.Usage{Total: pointer(6)}}
			return chunks, err
		},
		wantState: `{"perdure.steps":{"one":{"error":{"code":"limit_tokens","message":"step \"one\": the agent reached its limit of 5 tokens"}},"two":"re after limit_tokens"}}`,
	},
	"steps instead": {
		steps: `
  - {name: one, agent: {}, input: "please fail", onError: {steps: [{name: instead, tool: note, args: {note: "${error.code}"}}]}}
  - {name: two, tool: note, args: {note: "then"}}`,
		wantNotes: []string{"invalid_request", "then"},
		wantState: `{"perdure.steps":{"instead":"invalid_request","two":"then"}}`,
	},
	"tries": {
		steps: `
  - {name: one, tool: note, args: {note: "try", fail: true}, retry: {attempts: 3, interval: 5m, backoff: 2}, onError: continue}`,
		wantNotes: []string{"try", "try", "try"},
		wantState: `{"perdure.steps":{"one":{"error":{"code":"tool_failed","message":"step \"one\": the tool \"note\" failed: it fails"}}}}`,
	},
	"tries of an agent": {
		steps: `
  - {name: one, agent: {}, input: "go", retry: {attempts: 3, interval: 5m}}`,
		model: func(n int, req *llm.Request) ([]llm.Chunk, error) {
			if n < 3 {
				return nil, &llm.Error{Code: llm.CodeInvalidRequest}
			}
			return textAnswer("at last")
		},
		wantState: `{"perdure.steps":{"one":"at last"}}`,
	},
	"a branch that fails, with onError: continue": {
		steps: `
  - name: all
    map: {items: "['a', 'b', 'c', 'd']", concurrency: 2, onError: continue, steps: [{name: each, agent: {}, input: "${item == 'b' ? 'fail' : item}"}]}
  - {name: two, tool: note, args: {note: "all ${steps.all.map(s, has(s.error) ? s.error.code : s.each)}"}}`,
		wantNotes: []string{`all ["re a","invalid_request","re c","re d"]`},
	},
	"a branch that fails": {
		steps: `
  - name: all
    map: {items: "['a', 'b', 'c', 'd']", concurrency: 1, steps: [{name: in, tool: note, args: {note: "${item}", fail: "${item == 'b'}"}}]}
  - {name: two, tool: note, args: {note: "never"}}`,
		wantNotes: []string{"a", "b"},
		wantCode:  "tool_failed",
	},
	"compensation": {
		steps: `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - name: both
    parallel:
      - {name: left, tool: note, args: {note: "left"}, compensate: {tool: note, args: {note: "undo ${steps.left}"}}}
      - {name: right, set: {/right: 1}}
  - {name: three, agent: {}, input: "fail"}`,
		wantNotes: []string{"one", "left", "undo left", "undo one"},
		wantCode:  "invalid_request",
	},
	"a compensation that fails": {
		steps: `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, tool: note, args: {note: "two"}, compensate: {agent: {}, input: "fail"}}
  - {name: three, tool: note, args: {note: "three", fail: true}}`,
		wantNotes: []string{"one", "two", "three", "undo one"},
		wantCode:  "tool_failed",
	},
	"an answer that has to be repaired": {
		steps: `
  - {name: one, agent: {}, input: "a number", output: {schema: {type: integer}}}
  - {name: two, tool: note, args: {note: "${string(steps.one + 1)}"}}`,
		model: func(n int, req *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return textAnswer("seven")
			}
			if got := requestText(req); !strings.Contains(got, "\nuser: a number\nassistant: seven\nuser: Your last answer is not") {
				return nil, &llm.Error{Code: llm.CodeInvalidRequest, Message: "the model hears " + got}
			}
			return textAnswer("```json\n7\n```")
		},
		wantNotes: []string{"8"},
		wantState: `{"perdure.steps":{"one":7,"two":8}}`,
	},
	"an answer that is never right": {
		steps: `
  - {name: one, agent: {}, input: "a number", output: {schema: {type: integer}, repairs: 1}, onError: continue}
  - {name: two, tool: note, args: {note: "${steps.one.error.code}"}}`,
		model:     func(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("seven") },
		wantNotes: []string{"invalid_output"},
	},
	"loop, route and when": {
		steps: `
  - name: again
    loop:
      max: 5
      until: state.n >= 3
      steps:
        - {name: count, set: {/n: "${has(state.n) ? state.n + 1 : 1}"}}
        - {name: odd, when: "round % 2 == 1", tool: note, args: {note: "round ${round}"}}
  - name: which
    route: [{when: state.n == 5, steps: [{name: five, tool: note, args: {note: "five"}}]}, {steps: [{name: rest, tool: note, args: {note: "rest"}}]}]`,
		wantNotes: []string{"round 1", "round 3", "rest"},
	},
	"an unknown agent": {
		steps: `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, agent: nobody, input: "go"}`,
		wantNotes: []string{"one", "undo one"},
		wantCode:  "agent_unavailable",
	},
	"the time of a step": {
		steps: `
  - {name: one, tool: note, args: {note: "try", fail: true}, timeout: 10m, retry: {attempts: 9, interval: 4m, backoff: 1}, onError: continue}
  - {name: two, tool: note, args: {note: "then"}}`,
		wantNotes: []string{"try", "try", "try", "then"},
	},
}

// TestPipelines: later steps see the output of a step, or its failure, however the step fails.
func TestPipelines(t *testing.T) {
	t.Parallel()
	for name, c := range stepsCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.model == nil {
				c.model = echoModel
			}
			fixture, j := setupPipeline(t, c.model, c.steps)
			fixture.acts.ToolGrace = time.Nanosecond
			events, _ := fixture.run("go")
			if got := failureOf(events); got != c.wantCode {
				t.Errorf("got the code %q, want %q: %s", got, c.wantCode, typesOf(events))
			}
			j.wantEntries(t, c.wantNotes...)
			if c.wantState != "" {
				fixture.wantState(c.wantState)
			}
			for _, text := range []string{"no luck", "it fails", "provider's own"} {
				if strings.Contains(fixture.history.String(), text) {
					t.Errorf("history = %q, want no %q", fixture.history.String(), text)
				}
			}
			fixture.wantShownConversation(events)
		})
	}
}

// TestCircularAgentSteps: agents whose steps call one another in a circle end at the limit of
// subagents.
func TestCircularAgentSteps(t *testing.T) {
	t.Parallel()
	helper := parseDefinition(t, "name: helper\nmodel: test/helper\nsteps: [{name: on, agent: other, input: on}]")
	other := parseDefinition(t, "name: other\nmodel: test/helper\nsteps: [{name: rows, map: {items: \"[1]\", steps: [{name: back, agent: helper, input: back}]}}]")
	fixture := setupSubagents(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
			return textAnswer(last.Text())
		}
		return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
	}, []*agents.Definition{helper, other})
	events, result := fixture.run("go")
	wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	var begun []string
	for _, ev := range events {
		switch ev := ev.(type) {
		case *agui.SubagentStarted:
			begun = append(begun, ev.Name)
		case *agui.SubagentError:
			begun = append(begun, "!"+ev.Code)
		}
	}
	got := strings.Join(begun, " ")
	wantEqual(t, "subagents", got, "helper other rows/0 helper !limit_subagents !tool_failed !tool_failed !tool_failed")
	fixture.wantShownConversation(events)
}

// TestCancelledPipelineCompensates: a cancelled run compensates for its work, also in finished
// branches. The compensations are not cancelled.
func TestCancelledPipelineCompensates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps     string
		wantNotes []string
	}{
		"in a call": {`
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
  - {name: two, tool: hang}`, []string{"one", "undo one"}},
		"in branches": {`
  - {name: one, tool: note, args: {note: "one"}, compensate: {agent: {tools: [note]}, input: "undo"}}
  - name: all
    map: {items: "['a', 'b', 'c']", concurrency: 3, steps: [
      {name: first, tool: note, args: {note: "${item}"}, compensate: {tool: note, args: {note: "undo ${item}"}}},
      {name: wait, when: "item == 'c'", tool: hang}]}`, []string{"one", "a", "b", "c", "undo a", "undo b", "undo c", "by agent"}},
		"nothing but branches": {`
  - name: all
    parallel:
      - {name: left, tool: note, args: {note: "left"}, compensate: {tool: note, args: {note: "undo left"}}}
      - {name: right, tool: hang}`, []string{"left", "undo left"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &callJournal{}
			var f *fixture
			hang := tools.Func("hang", "hangs", func(ctx context.Context, _ struct{}) (string, error) {
				f.awaitResults(ctx, len(c.wantNotes)/2)
				_, err := f.log.RequestCancel(context.WithoutCancel(ctx), run, stream.Cancel{})
				if err = errors.Join(err, f.log.AnnounceCancel(run)); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return "", ctx.Err()
			})
			f = setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
					return textAnswer("undone")
				}
				return callAnswer([3]string{"x", "note", `{"note":"by agent"}`})
			}, j.tool(), hang)
			f.agent = parseDefinition(t, "name: a\nmodel: test/m\ntools: [note, hang]\nsteps:\n"+c.steps)
			events, result := f.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeCancelled)
			j.wantEntriesInAnyOrder(t, c.wantNotes...)
			f.wantShownConversation(events)
		})
	}
}

// TestHeldPipelineContinuesAfterInterrupts: an interrupt of a held run ends with its step, however
// the step ends. Later steps run.
func TestHeldPipelineContinuesAfterInterrupts(t *testing.T) {
	t.Parallel()
	const one = `
  - {name: one, tool: note, args: {note: "one"}, compensate: {tool: note, args: {note: "undo one"}}}
`
	for name, c := range map[string]struct {
		steps       string
		cancel      bool
		wantOutcome runs.Outcome
		wantNotes   []string
	}{
		"cancelled": {one + `
  - {name: ask, approve: {message: "Well?"}}
  - {name: two, tool: note, args: {note: "two"}}`, true, runs.OutcomeCancelled, []string{"one", "undo one"}},
		"cancelled in a branch": {`
  - name: all
    parallel: [{name: left, steps: [` + strings.TrimPrefix(strings.TrimSpace(one), "- ") + `, {name: ask, approve: {message: "Well?"}}]}]`,
			true, runs.OutcomeCancelled, []string{"one", "undo one"}},
		"expired": {one + `
  - {name: ask, approve: {message: "Well?", expires: 1m, onExpiry: fail}, onError: {steps: [{name: two, tool: note, args: {note: "${error.code}"}}]}}
  - {name: three, agent: {tools: [note]}, input: "three"}`, false, runs.OutcomeSuccess, []string{"one", "approval_expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture, j := setupPipeline(t, echoModel, c.steps)
			fixture.hold = true
			if c.cancel {
				fixture.env.RegisterDelayedCallback(func() {
					if _, err := fixture.log.RequestCancel(t.Context(), run, stream.Cancel{}); err != nil {
						t.Error(err)
					}
					fixture.env.CancelWorkflow()
				}, time.Minute)
			}
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, c.wantOutcome)
			j.wantEntries(t, c.wantNotes...)
			fixture.wantShownConversation(events)
		})
	}
}

// awaitResults waits until n calls have results: a call that is cancelled before its result is not
// known to be done.
func (f *fixture) awaitResults(ctx context.Context, n int) {
	for ctx.Err() == nil {
		thread, err := f.acts.Snapshots.Latest(ctx, run.Thread, 0)
		if err != nil {
			return
		}
		results := 0
		for _, entry := range thread.Entries {
			if entry.Message.Role == agui.RoleTool {
				results++
			}
		}
		if results >= n {
			return
		}
		runtime.Gosched()
	}
}

// TestConcurrentBranchesSetState: branches that change the same member of the state, each based on
// its old value, lose no change.
func TestConcurrentBranchesSetState(t *testing.T) {
	t.Parallel()
	fixture, _ := setupPipeline(t, echoModel, `
  - {name: begin, set: {/n: 0, /all: []}}
  - name: rows
    map:
      items: "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30]"
      concurrency: 15
      steps:
        - {name: count, set: {/n: "${state.n + item}"}}
        - {name: note, tool: note, args: {note: "${string(item)}"}}
        - name: once
          retry: {attempts: 50, interval: 1s}
          set: [{op: test, path: /n, value: "${state.n}"}, {path: /n, value: "${state.n + 1000}"}, {path: /all/-, value: "${item}"}]
`)
	events, result := fixture.run("go")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	var state struct {
		N   int   `json:"n"`
		All []int `json:"all"`
	}
	if err := json.Unmarshal([]byte(fixture.threadState()), &state); err != nil {
		t.Fatal(err)
	}
	if want := 465 + 30*1000; state.N != want || len(state.All) != 30 {
		t.Errorf("state: got n = %d, want %d, and all = %v", state.N, want, state.All)
	}
	fixture.wantShownConversation(events)
}
