package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publish puts a definition and returns the revision.
func (p *endpoint) publish(t *testing.T, agent, definition string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.url("/v1/agents/"+agent), strings.NewReader(definition))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode > http.StatusCreated {
		t.Fatalf("PUT: %s %s (%v)", resp.Status, body, err)
	}
	return strings.Trim(resp.Header.Get("ETag"), `"`)
}

// revisionOf returns what RUN_STARTED says.
func revisionOf(t *testing.T, events []event) string {
	t.Helper()
	var started struct {
		Type     string            `json:"type"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(events[0].Data, &started); err != nil || started.Type != "RUN_STARTED" {
		t.Fatalf("%s (%v)", events[0].Data, err)
	}
	return started.Metadata["perdure.revision"]
}

// instructions returns what the model was told before each of the calls that a prompt has led to.
func instructions(t *testing.T, prompt string) []string {
	t.Helper()
	var told []string
	for _, c := range sharedModel.calls(t, prompt) {
		told = append(told, strings.TrimSpace(c.Body.Messages[0].text()))
	}
	return told
}

// A prompt that is changed in the middle of a run is not that run's: what the model hears, and what
// readers are told, is the revision that the run began with. The thread's next run has the new one.
func TestRevisionInMidRun(t *testing.T) {
	t.Parallel()
	const agent = "revised"
	define := func(instructions string) string {
		return fmt.Sprintf("name: %s\nmodel: openai/scripted-by-the-test\ninstructions: %s\ntools: [calculate]\n", agent, instructions)
	}
	before, after := say("Be brief."), say("Be kind.")
	first := shared.publish(t, agent, define(before))
	in := newInput(say("Use your tools, slowly."))
	yes, no := true, false
	sharedModel.answer(t,
		fixture{Match: match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: response{
			Content: long(200), ToolCalls: []modelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		fixture{Match: match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: response{Content: say("Done.")}})
	f := shared.followAgent(t, "/v1/agents/"+agent+"/runs", in)
	f.contents(t, 2)
	second := shared.publish(t, agent, define(after))
	if n := len(sharedModel.calls(t, in.Messages[0].Content)); n != 1 {
		t.Fatalf("the run was not in its first turn any more: %d model calls", n)
	}
	f.finish(t)
	if got, want := instructions(t, in.Messages[0].Content), []string{before, before}; !slices.Equal(got, want) {
		t.Errorf("the model was told %q, want %q", got, want)
	}
	if got := revisionOf(t, f.events); got != first {
		t.Errorf("readers are told of revision %s, want %s", got, first)
	}
	next := in.after("run-2", "reject", user(say("And now?")))
	sharedModel.answerWith(t, next.Messages[1].Content, say("Now this."))
	g := shared.followAgent(t, "/v1/agents/"+agent+"/runs", next)
	g.finish(t)
	if got := instructions(t, next.Messages[1].Content); !slices.Equal(got, []string{after}) {
		t.Errorf("in the next run the model was told %q, want %q", got, after)
	}
	if got := revisionOf(t, g.events); got != second {
		t.Errorf("readers of the next run are told of revision %s, want %s", got, second)
	}
}

// An edited file takes effect with the next start, but not in place of what came over HTTP.
func TestEditedFile(t *testing.T) {
	t.Parallel()
	p := newPerdure(filepath.Join(t.TempDir(), "data"), sharedModel)
	p.agents = t.TempDir()
	p.keep(t)
	definition := func(text string) string {
		return "name: edited\nmodel: openai/scripted-by-the-test\ninstructions: " + text + "\n"
	}
	restart := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.agents, "edited.yaml"), []byte(definition(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if p.process != nil {
			if err := p.stop(); err != nil {
				t.Fatal(err)
			}
		}
		p.start(t)
	}
	hears := func(want string) {
		t.Helper()
		in := newInput(say("Who are you?"))
		sharedModel.answerWith(t, in.Messages[0].Content, say("I am."))
		p.followAgent(t, "/v1/agents/edited/runs", in).finish(t)
		if got := instructions(t, in.Messages[0].Content); !slices.Equal(got, []string{want}) {
			t.Errorf("the model was told %q, want %q", got, want)
		}
	}
	file, edited, put := say("from the file"), say("edited"), say("put")
	restart(file)
	hears(file)
	restart(edited)
	hears(edited)
	p.publish(t, "edited", definition(put))
	hears(put)
	restart(say("edited again"))
	hears(put)
	restart(put) // what was put is in the file now, which has its say again
	restart(file)
	hears(file)
}

// A run whose agent has tools that no worker has yet waits for one.
func TestToolsOfTheNextVersion(t *testing.T) {
	t.Parallel()
	d := startDeployment(t)
	d.programs = programs // whose workers do not have what the agent wants
	lacking := d.startWorker(t)
	resp, err := d.front.get(t.Context(), "/v1/agents/performer", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if want := `"unavailableTools":["observe","charge"]`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("the agent is shown as %s (%v), want %s", body, err, want)
	}
	r := d.begin(t, nowhere)
	d.stranded(t, r.in)
	d.programs = observedPrograms
	d.startWorker(t)
	if err := lacking.stop(); err != nil {
		t.Error(err)
	}
	r.finish(t)
}
