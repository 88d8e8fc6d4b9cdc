package runs

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/stream/trace"
)

// structured has an agent whose first answer is invalid, and another one that calls it.
const structured = `name: clerk
model: scripted/clerk
output: {schema: {type: object, properties: {total: {type: integer}, why: {type: string}}, required: [total]}}
---
name: stubborn
model: scripted/stubborn
output: {schema: {type: object}, repairs: 1}
---
name: lead
model: scripted/lead
tools: ["agent:clerk"]
---
kind: script
name: clerk
turns:
  - {when: 'is not valid', steps: [{say: '{"total": 84, "why": "LONG"}'}]}
  - {steps: [{say: "It is eighty-four."}]}
---
kind: script
name: stubborn
turns: [{steps: [{say: "No."}]}]
---
kind: script
name: lead
turns:
  - steps: [{calls: [{tool: clerk, arguments: {task: "How much?"}}]}, {say: "Done: {clerk}"}]
`

// why is the long part of the repaired answer.
var why = strings.Repeat("so it is ", 60)

// TestKillBetweenAnswerAndRepair: the process is killed between an invalid answer and its repair, and while the repair is
// written. Clients of both generations have both answers, and the run has its result once. The next run continues with the messages that
// the client has.
func TestKillBetweenAnswerAndRepair(t *testing.T) {
	t.Parallel()
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		p := kit.SetupWith(t, strings.ReplaceAll(structured, "LONG", why))
		in := kit.NewInput("How much?")
		d := g.Drive(t, p, kit.Script{
			URL: p.URL("/v1/agents/clerk/runs"), ThreadID: in.ThreadID, Runs: []kit.ScriptedRun{
				{RunID: in.RunID, Messages: in.Messages}, {RunID: "run-2", Add: []kit.Message{kit.UserMessage("And now?")}},
			},
			Reconnect: &kit.ReconnectRule{Addresses: p.AddressFile()},
		})
		d.Until(t, "STEP_STARTED", 1)
		d.Until(t, "TEXT_MESSAGE_END", 1)
		p.Kill()
		p.Start(t)
		d.Until(t, "STEP_STARTED", 1)
		p.Kill()
		p.Start(t)
		ends := d.Finish(t)
		answer := `{"total": 84, "why": "` + why + `"}`
		var texts []string
		for _, m := range ends[1].Messages {
			texts = append(texts, m.Role+": "+m.Content)
		}
		answers := "assistant: It is eighty-four.\nassistant: " + answer
		if got, want := strings.Join(texts, "\n"), "user: How much?\n"+answers+"\nuser: And now?\n"+answers; got != want {
			t.Errorf("messages of the client:\n%s\nwant\n%s", got, want)
		}
		kit.WantMessages(t, p.MessagesOf(t, in.ThreadID), ends[1].Messages)
		if n := len(d.Events(1, "MESSAGES_SNAPSHOT")); n != 0 {
			t.Errorf("the next run has %d snapshots of the messages, want none: the client has them all", n)
		}
		finished := d.Events(0, "RUN_FINISHED")
		var last struct{ Result json.RawMessage }
		if err := json.Unmarshal(finished[len(finished)-1], &last); err != nil {
			t.Fatal(err)
		}
		wantJSON(t, "result in the stream", last.Result, answer)
		var run client.ThreadRun
		p.GetJSON(t, "/v1/threads/"+in.ThreadID+"/runs/"+in.RunID, &run)
		wantJSON(t, "result of the run", run.Result, answer)
	})
}

// wantJSON checks a JSON value.
func wantJSON(t *testing.T, what string, got json.RawMessage, want string) {
	t.Helper()
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !equalJSON(a, b) {
		t.Errorf("%s = %s, want %s", what, got, want)
	}
}

// equalJSON reports whether two JSON values are equal.
func equalJSON(a, b any) bool {
	one, err := json.Marshal(a)
	other, otherErr := json.Marshal(b)
	return err == nil && otherErr == nil && string(one) == string(other)
}

// TestCall: the Go client has the result as a value, or the code of the failure. A subagent's result is the result of its
// call.
func TestCall(t *testing.T) {
	t.Parallel()
	p := kit.SetupWith(t, strings.ReplaceAll(structured, "LONG", "so"))
	c, err := client.New(client.Config{URL: p.URL("")})
	if err != nil {
		t.Fatal(err)
	}
	call := func(agent string) (agui.RunAgentInput, struct{ Total int }, error) {
		input := client.Text("How much?")
		p.Threads.Add(input.ThreadID)
		result, err := client.Call[struct{ Total int }](t.Context(), c, agent, input)
		return input, result, err
	}
	const problem = "the answer is not JSON, or has text around the JSON"
	input, result, err := call("clerk")
	if err != nil || result.Total != 84 {
		t.Errorf("result = %+v, %v, want 84", result, err)
	}
	wantModelSpans(t, p, input, "finished the answer does not fit the schema, and was sent back: "+problem, "finished ")
	input, _, err = call("stubborn")
	var failed *client.RunError
	if !errors.As(err, &failed) || failed.Code != "invalid_output" || !strings.HasSuffix(failed.Message, problem) {
		t.Errorf("error = %v, want invalid_output", err)
	}
	wantModelSpans(t, p, input, "finished the answer does not fit the schema, and was sent back: "+problem, "failed the answer does not fit the schema: "+problem)
	input, _, err = call("lead")
	var none *client.ResultError
	if !errors.As(err, &none) || none.JSON != nil {
		t.Errorf("error = %v, want that there is no result", err)
	}
	messages := p.MessagesOf(t, input.ThreadID)
	if last := messages[len(messages)-1]; last.Content != `Done: {"total":84,"why":"so"}` {
		t.Errorf("last message = %q, want the result of the subagent", last.Content)
	}
}

// wantModelSpans checks the status and the error of each model call of a run.
func wantModelSpans(t *testing.T, p *kit.Perdure, input agui.RunAgentInput, want ...string) {
	t.Helper()
	var run trace.Trace
	p.GetJSON(t, "/v1/threads/"+input.ThreadID+"/runs/"+input.RunID+"/trace", &run)
	var got []string
	for _, s := range run.Spans {
		if s.Kind != trace.KindModel {
			continue
		}
		text := string(s.Status) + " "
		if s.Error != nil {
			text += s.Error.Message
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("model calls of the trace = %q, want %q", got, want)
	}
}
