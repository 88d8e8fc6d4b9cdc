package remote

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

const structured = `
name: NAME
remote: {url: SERVER/NAME}
output: {schema: {type: object, properties: {customer: {type: string}}, required: [customer]}, repairs: 1}
`

// TestOutputs: the result of a remote agent's run is the result of its RUN_FINISHED, or its last message, if only
// that is valid: some remotes have a result of another kind. An invalid answer is sent back in another run.
func TestOutputs(t *testing.T) {
	t.Parallel()
	valid := `{"customer":` + kit.Quote(kit.Mark) + `}`
	const traced = `,"result":{"traceId":"4bf92f"}`
	type answer struct{ text, result string }
	cases := map[string][]answer{ // the answers of the agent's runs
		"result":  {{text: kit.Mark + " done", result: `,"result":` + valid}},
		"message": {{text: valid}},
		"traced":  {{text: valid, result: traced}},
		"repairs": {{text: kit.Mark + " done", result: traced}, {text: valid, result: traced}},
	}
	s := startFlakyServer(t)
	var definitions []string
	for name, answers := range cases {
		definitions = append(definitions, strings.NewReplacer("NAME", name, "SERVER", s.URL).Replace(structured))
		s.handle("/"+name, func(e *exchange) {
			a := answers[min(e.n, len(answers))-1]
			ids := `"threadId":` + kit.Quote(e.in.ThreadID) + `,"runId":` + kit.Quote(e.in.RunID)
			e.emit(`{"type":"RUN_STARTED",`+ids+`}`,
				`{"type":"TEXT_MESSAGE_START","messageId":"m`+e.in.RunID+`","role":"assistant"}`,
				`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m`+e.in.RunID+`","delta":`+kit.Quote(a.text)+`}`,
				`{"type":"TEXT_MESSAGE_END","messageId":"m`+e.in.RunID+`"}`,
				`{"type":"RUN_FINISHED",`+ids+a.result+`}`)
		})
	}
	p := startWith(t, strings.Join(definitions, "---\n"))
	for name, answers := range cases {
		events := p.RunAgent(t, "/v1/agents/"+name+"/runs", kit.NewInput(kit.Marked("Who pays?")))
		var last struct{ Result json.RawMessage }
		if err := json.Unmarshal(events[len(events)-1].Data, &last); err != nil {
			t.Fatal(err)
		}
		if string(last.Result) != valid {
			t.Errorf("%s: end of the run = %s, want the result %s", name, events[len(events)-1].Data, valid)
		}
		if n := len(s.received("/" + name)); n != len(answers) {
			t.Errorf("%s: runs of the remote = %d, want %d", name, n, len(answers))
		}
	}
}
