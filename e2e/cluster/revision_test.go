package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// revisionOf returns the revision in RUN_STARTED.
func revisionOf(t *testing.T, events []kit.Event) string {
	t.Helper()
	var started struct {
		Type     string            `json:"type"`
		Metadata map[string]string `json:"metadata"`
	}
	if err := json.Unmarshal(events[0].Data, &started); err != nil || started.Type != "RUN_STARTED" {
		t.Fatalf("first event = %s (%v), want RUN_STARTED", events[0].Data, err)
	}
	return started.Metadata["perdure.revision"]
}

// instructions returns the instructions in each model call for a prompt.
func instructions(t *testing.T, prompt string) []string {
	t.Helper()
	var texts []string
	for _, c := range kit.SharedModel.Calls(t, prompt) {
		texts = append(texts, strings.TrimSpace(c.Body.Messages[0].Text()))
	}
	return texts
}

// TestRevisionDuringRun: a definition is changed in the middle of a run. The model and the readers
// keep the revision with which the run began. The thread's next run has the new one.
func TestRevisionDuringRun(t *testing.T) {
	t.Parallel()
	const agent = "revised"
	define := func(instructions string) string {
		return fmt.Sprintf("name: %s\nmodel: openai/scripted-by-the-test\ninstructions: %s\ntools: [calculate]\n", agent, instructions)
	}
	before, after := kit.Marked("Be brief."), kit.Marked("Be kind.")
	first := kit.Shared.Publish(t, agent, define(before))
	in := kit.NewInput(kit.Marked("Use your tools, slowly."))
	yes, no := true, false
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &no}, Response: kit.Response{
			Content: kit.LongText(200), ToolCalls: []kit.ModelCall{{Name: "calculate", Arguments: `{"expression":"6*7"}`}},
		}, ChunkSize: 8, Latency: 25},
		kit.Fixture{Match: kit.Match{UserMessage: in.Messages[0].Content, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("Done.")}})
	f := kit.Shared.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
	f.UntilContent(t, 2)
	second := kit.Shared.Publish(t, agent, define(after))
	if n := len(kit.SharedModel.Calls(t, in.Messages[0].Content)); n != 1 {
		t.Fatalf("number of model calls = %d, want 1: the run has left its first turn", n)
	}
	f.Finish(t)
	if got, want := instructions(t, in.Messages[0].Content), []string{before, before}; !slices.Equal(got, want) {
		t.Errorf("the model got %q, want %q", got, want)
	}
	if got := revisionOf(t, f.Events); got != first {
		t.Errorf("revision for readers: got %s, want %s", got, first)
	}
	next := in.NextRun("run-2", "reject", kit.UserMessage(kit.Marked("And now?")))
	kit.SharedModel.AnswerWith(t, next.Messages[1].Content, kit.Marked("Now this."))
	g := kit.Shared.FollowAgent(t, "/v1/agents/"+agent+"/runs", next)
	g.Finish(t)
	if got := instructions(t, next.Messages[1].Content); !slices.Equal(got, []string{after}) {
		t.Errorf("in the next run the model got %q, want %q", got, after)
	}
	if got := revisionOf(t, g.Events); got != second {
		t.Errorf("revision for readers of the next run: got %s, want %s", got, second)
	}
}

// TestEditedFile: an edited file takes effect at the next start, but does not replace a definition
// that was published over HTTP.
func TestEditedFile(t *testing.T) {
	t.Parallel()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents = t.TempDir()
	p.InspectAtEnd(t)
	definition := func(text string) string {
		return "name: edited\nmodel: openai/scripted-by-the-test\ninstructions: " + text + "\n"
	}
	restart := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Agents, "edited.yaml"), []byte(definition(text)), 0o600); err != nil {
			t.Fatal(err)
		}
		if p.Process != nil {
			if err := p.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		p.Start(t)
	}
	hears := func(want string) {
		t.Helper()
		in := kit.NewInput(kit.Marked("Who are you?"))
		kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("I am."))
		p.FollowAgent(t, "/v1/agents/edited/runs", in).Finish(t)
		if got := instructions(t, in.Messages[0].Content); !slices.Equal(got, []string{want}) {
			t.Errorf("the model got %q, want %q", got, want)
		}
	}
	file, edited, put := kit.Marked("from the file"), kit.Marked("edited"), kit.Marked("put")
	restart(file)
	hears(file)
	restart(edited)
	hears(edited)
	p.Publish(t, "edited", definition(put))
	hears(put)
	restart(kit.Marked("edited again"))
	hears(put)
	restart(put) // the file has the published definition, so its edits count again
	restart(file)
	hears(file)
}

// TestToolsOfNextVersion: a run whose agent needs tools that no worker has yet waits for such a
// worker.
func TestToolsOfNextVersion(t *testing.T) {
	t.Parallel()
	d := setupDeployment(t)
	d.Programs = kit.Programs // workers without the agent's tools
	lacking := d.StartWorker(t)
	resp, err := d.api.Get(t.Context(), "/v1/agents/observed", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if want := `"unavailableTools":["observe","charge"]`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("the agent is shown as %s (%v), want %s", body, err, want)
	}
	r := d.startRun(t, kit.NoTurn)
	d.awaitStranded(t, r.in)
	d.Programs = kit.ObservedPrograms
	d.StartWorker(t)
	if err := lacking.Stop(); err != nil {
		t.Error(err)
	}
	r.finish(t)
}
