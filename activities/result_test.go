package activities_test

import (
	"net/http"
	"strings"
	"testing"

	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/workflows"
)

// resultOf returns the result with which a run finished, or "!" and the code and the message with which it failed.
func resultOf(events []agui.Event) string {
	switch end := events[len(events)-1].(type) {
	case *agui.RunFinished:
		if string(end.Metadata["perdure.nullResult"]) == "true" {
			return string(end.Result) + "null"
		}
		return string(end.Result)
	case *agui.RunError:
		return "!" + end.Code + ": " + end.Message
	}
	return "no end"
}

// notJSON is the problem of an answer that is no JSON.
const notJSON = "the answer is not JSON, or has text around the JSON"

// repairOf is the message that sends an answer back because of a problem.
func repairOf(problem string) string {
	return "user: Your last answer is not valid: " + problem + ". Answer again, with nothing but JSON that fits the schema."
}

// answersInTurn returns a script that answers each call with the next text.
func answersInTurn(texts ...string) script {
	return func(n int, _ *llm.Request) ([]llm.Chunk, error) { return textAnswer(texts[n-1]) }
}

const sumOutput = "output: {schema: {type: object, properties: {sum: {type: integer}}, required: [sum]}}\n"

// resultCases are agents with an output. The text of the last request is wantHeard, without the system message.
var resultCases = map[string]struct {
	agent      string
	others     []string
	model      script
	want       string
	wantCalls  int32
	wantHeard  string
	wantAnswer string // the last message
	wantNotes  []string
}{
	"a valid answer": {
		agent: "model: test/m\n" + sumOutput, model: answersInTurn("```json\n{\n  \"sum\": 3\n}\n```"),
		want: `{"sum":3}`, wantCalls: 1,
	},
	"an answer with characters of HTML": {
		agent: "model: test/m\noutput: {schema: {type: string}}\n", model: answersInTurn(`"<a> & \\u003cb \u003c"`),
		want: `"<a> & \\u003cb <"`, wantCalls: 1,
	},
	"an answer that is null": {
		agent: "model: test/m\noutput: {schema: {type: [object, \"null\"]}}\n", model: answersInTurn("null"),
		want: "null", wantCalls: 1,
	},
	"an answer that is repaired": {
		agent: "model: test/m\n" + sumOutput, model: answersInTurn("three", `{"sum":"3"}`, `{"sum":3}`),
		want: `{"sum":3}`, wantCalls: 3,
		wantHeard: "user: go\nassistant: three\n" + repairOf(notJSON) + "\nassistant: {\"sum\":\"3\"}\n" + repairOf("at /sum: got string, want integer"),
	},
	"an answer that is never valid": {
		agent: "model: test/m\noutput: {schema: {type: integer}, repairs: 1}\n", model: answersInTurn("x", "y"),
		want: "!invalid_output: the answer does not fit the schema: " + notJSON, wantCalls: 2,
	},
	"no repairs": {
		agent: "model: test/m\noutput: {schema: {type: integer}, repairs: 0}\n", model: answersInTurn("x"),
		want: "!invalid_output: the answer does not fit the schema: " + notJSON, wantCalls: 1,
	},
	"repairs count as turns": {
		agent: "model: test/m\noutput: {schema: {type: integer}, repairs: 9}\n", model: answersInTurn("x", "x", "x", "x", "x"),
		want: "!limit_turns: the run reached its limit of 5 turns", wantCalls: 5,
	},
	"an empty answer": {
		agent: "model: test/m\n" + sumOutput, model: answersInTurn("", `{"sum":3}`),
		want: `{"sum":3}`, wantCalls: 2, wantHeard: "user: go\n" + repairOf(notJSON),
	},
	"a tool call before and after a repair": {
		agent: "model: test/m\ntools: [note]\n" + sumOutput,
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			switch n {
			case 1, 3:
				return callAnswer([3]string{"1", "note", `{"note":"n"}`})
			case 2:
				return textAnswer("x")
			}
			return textAnswer(`{"sum":3}`)
		},
		want: `{"sum":3}`, wantCalls: 4, wantNotes: []string{"n", "n"},
		wantHeard: "user: go\nassistant:  note{\"note\":\"n\"}\ntool: n\nassistant: x\n" + repairOf(notJSON) + "\nassistant:  note{\"note\":\"n\"}\ntool: n",
	},
	"a subagent": {
		agent: "model: test/lead\ntools: [\"agent:helper\"]\n", others: []string{"name: helper\nmodel: test/helper\n" + sumOutput},
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
			}
			return textAnswer([]string{"x", "```\n{ \"sum\": 3 }\n```", "done"}[n-2])
		},
		wantCalls: 4, wantHeard: "user: go\nassistant:  helper{\"task\":\"work\"}\ntool: {\"sum\":3}", wantAnswer: "done",
	},
	"a subagent that is never valid": {
		agent: "model: test/lead\ntools: [\"agent:helper\"]\n", others: []string{"name: helper\nmodel: test/helper\noutput: {schema: {type: integer}, repairs: 0}\n"},
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
			}
			return textAnswer("x")
		},
		wantCalls: 3, wantAnswer: "x",
		wantHeard: "user: go\nassistant:  helper{\"task\":\"work\"}\ntool: The agent did not finish its work: invalid_output: the answer does not fit the schema.",
	},
	"a handoff": {
		agent: "model: test/lead\ntools: [\"handoff:helper\"]\noutput: {schema: {type: integer}, repairs: 1}\n", others: []string{"name: helper\nmodel: test/helper\noutput: {schema: {type: string}, repairs: 1}\n"},
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 2 {
				return callAnswer([3]string{"1", "transfer_to_helper", `{}`})
			}
			return textAnswer([]string{"x", "", "y", `"z"`}[n-1])
		},
		want: `"z"`, wantCalls: 4,
	},
	"the last step": {
		agent: "model: test/m\nsteps:\n  - {name: one, agent: {}, output: {schema: {type: integer}}}\noutput: {schema: {minimum: 7}}\n",
		model: answersInTurn("x", "7"), want: "7", wantCalls: 2,
	},
	"an expression": {
		agent: "model: test/m\nsteps:\n  - {name: one, agent: {}, input: x}\n  - {name: two, set: {/n: 1}}\noutput: {value: \"{'one': steps.one, 'n': state.n}\"}\n",
		model: answersInTurn("1"), want: `{"n":1,"one":"1"}`, wantCalls: 1,
	},
	"an invalid result of steps": {
		agent: "model: test/m\ntools: [note]\nsteps:\n  - {name: one, tool: note, args: {note: done}, compensate: {tool: note, args: {note: undone}}}\noutput: {schema: {type: integer}}\n",
		model: noModel, want: "!invalid_output: the result of the agent does not fit its schema: at /: got string, want integer", wantNotes: []string{"done", "undone"},
	},
	"a result of steps without a value": {
		agent: "model: test/m\nsteps:\n  - {name: one, set: {/n: 1}}\noutput: {value: state.m}\n",
		model: noModel, want: "!invalid_expression: output.value: ",
	},
	"an agent with an output as a step": {
		agent: "model: test/m\nsteps:\n  - {name: one, agent: helper, input: a}\noutput: {value: steps.one.sum + 1}\n", others: []string{"name: helper\nmodel: test/m\n" + sumOutput},
		model: answersInTurn("x", `{"sum":3}`), want: "4", wantCalls: 2, wantHeard: "user: a\nassistant: x\n" + repairOf(notJSON),
	},
	"the output of a step comes before its agent's": {
		agent: "model: test/m\nsteps:\n  - {name: one, agent: helper, input: a, output: {schema: {type: integer}}}\noutput: {value: steps.one}\n", others: []string{"name: helper\nmodel: test/m\n" + sumOutput},
		model: answersInTurn("3"), want: "3", wantCalls: 1,
	},
	"steps with an output as a step": {
		agent: "model: test/m\nsteps:\n  - {name: one, agent: helper, input: a}\noutput: {value: steps.one.sum + 1}\n", others: []string{"name: helper\nmodel: test/m\nsteps: [{name: inner, agent: {}}]\noutput: {value: \"{'sum': int(steps.inner)}\"}\n"},
		model: answersInTurn("3"), want: "4", wantCalls: 1,
	},
	"steps with an output as a subagent": {
		agent: "model: test/lead\ntools: [\"agent:helper\"]\n", others: []string{"name: helper\nmodel: test/m\nsteps: [{name: inner, agent: {}}]\noutput: {value: \"{'sum': int(steps.inner)}\"}\n"},
		model: func(n int, _ *llm.Request) ([]llm.Chunk, error) {
			if n == 1 {
				return callAnswer([3]string{"1", "helper", `{"task":"work"}`})
			}
			return textAnswer([]string{"3", "done"}[n-2])
		},
		wantCalls: 3, wantHeard: "user: go\nassistant:  helper{\"task\":\"work\"}\ntool: {\"sum\":3}",
	},
	"branches of an agent with an output": {
		agent: "model: test/m\nsteps:\n  - {name: all, map: {items: \"[1, 2]\", concurrency: 1, steps: [{name: one, set: {\"/n/${index}\": 7}}]}}\noutput: {value: \"state.n['1']\"}\n",
		model: noModel, want: "7",
	},
}

// TestResults: the result of a run is the value of the agent's output, which is checked. Invalid answers are sent
// back, and clients do not see the messages about them.
func TestResults(t *testing.T) {
	t.Parallel()
	for name, c := range resultCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, heard := &callJournal{}, ""
			fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
				messages := req.Messages
				if messages[0].Role == llm.RoleSystem {
					messages = messages[1:]
				}
				heard = requestText(&llm.Request{Messages: messages})
				return c.model(n, req)
			}, j.tool())
			fixture.agent, fixture.others = parseDefinition(t, "name: a\n"+c.agent), map[string]*agents.Definition{}
			for _, other := range c.others {
				d := parseDefinition(t, other)
				fixture.others[d.Name] = d
			}
			events, _ := fixture.run("go")
			if got := resultOf(events); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
				t.Errorf("result = %s, want %s", got, c.want)
			}
			wantEqual(t, "number of model calls", fixture.calls.Load(), c.wantCalls)
			if c.wantHeard != "" {
				wantEqual(t, "last request", heard, c.wantHeard)
			}
			j.wantEntries(t, c.wantNotes...)
			fixture.wantShownConversation(events)
			for _, e := range events {
				if raw, err := agui.Encode(e); err != nil || strings.Contains(string(raw), "Your last answer") {
					t.Errorf("clients see %s, %v, want no message about the answer", raw, err)
				}
			}
			if text := fixture.history.String(); strings.Contains(text, "not JSON") || strings.Contains(text, `"sum":3`) {
				t.Error("the history has content")
			}
		})
	}
}

// TestResultOfRemoteAgent: the answer of a remote agent is checked, or the result of its run. It gets the message
// about an invalid answer, with the schema, in another run.
func TestResultOfRemoteAgent(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]struct{ text, result string }{"answer": {`{\"sum\":3}`, ""}, "result": {"it is 3", `{"sum":3}`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, noModel)
			url, requests := f.serveRemote(func(n int, started, finished string, w http.ResponseWriter, _ *http.Request) {
				text := remoteText("no", "pe")
				if n == 2 {
					text = remoteText(last.text, "")
					text = append(text[:2], text[3])
					if last.result != "" {
						finished = strings.Replace(finished, "{", `{"result":`+last.result+`,`, 1)
					}
				}
				for i := range text {
					text[i] = strings.Replace(text[i], `"m1"`, `"m`+string(rune('0'+n))+`"`, 1)
				}
				writeEvents(w, 1, append(append([]string{started}, text...), finished)...)
			})
			f.agent = parseDefinition(t, "name: a\nremote: {url: "+url+"}\n"+sumOutput)
			events, _ := f.run("go")
			wantEqual(t, "result", resultOf(events), `{"sum":3}`)
			wantEqual(t, "number of requests", requests.Load(), 2)
			f.wantShownConversation(events)
		})
	}
}

// TestResultOfProgram: the result of a program is the value of its output when it has ended.
func TestResultOfProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, want string }{
		"valid":   {"output: {value: steps.one, schema: {type: string}}", `"re x"`},
		"invalid": {"output: {value: steps.one, schema: {type: integer}}", "!invalid_output: the result of the agent does not fit its schema: at /: got string, want integer"},
		"none":    {"output: {value: steps.two}", "!invalid_expression: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, echoModel)
			fixture.agent = parseDefinition(t, "name: a\nmodel: test/m\nworkflow: p\n"+c.output)
			fixture.registerProgram(func(ctx workflow.Context, a *workflows.Agent) error {
				return a.Do(ctx, agents.Ask[string]("one", agents.AgentStep{}, "x"))
			})
			events, result := fixture.run("go")
			if got := resultOf(events); !strings.HasPrefix(got, c.want) {
				t.Errorf("result = %s, want %s", got, c.want)
			}
			wantEqual(t, "success", result.Outcome == runs.OutcomeSuccess, name == "valid")
			fixture.wantShownConversation(events)
		})
	}
}
