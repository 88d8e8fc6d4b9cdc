package operations

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// bounded is an agent that asks, and then has steps with a subagent, a tool and a model.
const bounded = `
name: bounded
model: openai/scripted-by-the-test
tools: [calculate]
steps:
  - {name: sign_off, approve: {message: "Go on?"}}
  - {name: work, agent: lead, input: "Work on ${input.text}"}
  - {name: sum, tool: calculate, args: {expression: "6*7"}}
  - {name: thanks, agent: {instructions: You thank.}, input: "Give thanks for ${input.text}"}
`

// TestAcceptedRunEndsAtQuotaOfLogBytes: a tenant without bytes left in the log starts no run. A run
// that was accepted before continues after its approval, with all of its steps and its subagent.
func TestAcceptedRunEndsAtQuotaOfLogBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	quotas := filepath.Join(dir, "quotas.yaml")
	write := func(text string) {
		if err := os.WriteFile(quotas, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("default: {logBytes: unlimited}")
	p := kit.NewPerdure(filepath.Join(dir, "data"), kit.SharedModel)
	p.Env = []string{"PERDURE_QUOTAS_FILE=" + quotas}
	p.InspectAtEnd(t)
	p.Start(t)
	p.Publish(t, "bounded", bounded)
	in, task, thanks := kit.NewInput(kit.Marked("a report")), kit.Marked("Find out."), kit.Marked("Thank you. "+kit.LongText(20_000))
	work, yes, no := "Work on "+in.Messages[0].Content, true, false
	arguments, err := json.Marshal(map[string]string{"task": task})
	if err != nil {
		t.Fatal(err)
	}
	kit.SharedModel.Answer(t,
		kit.Fixture{Match: kit.Match{UserMessage: work, HasToolResult: &no}, Response: kit.Response{ToolCalls: []kit.ModelCall{{Name: "researcher", Arguments: string(arguments)}}}},
		kit.Fixture{Match: kit.Match{UserMessage: work, HasToolResult: &yes}, Response: kit.Response{Content: kit.Marked("It is done.")}})
	kit.ScriptCalculations(t, task, kit.Marked("I found it."), "1+1")
	kit.SharedModel.AnswerWith(t, "Give thanks for "+in.Messages[0].Content, thanks)
	f := p.FollowAgent(t, "/v1/agents/bounded/runs", in)
	f.Finish(t)

	write("default: {logBytes: 1}")
	awaitQuota(t, p.Endpoint, `"quota":"logBytes"`, `"limit":1}`)
	resp, err := p.Post(t.Context(), "/v1/agents/assistant/runs", kit.NewInput(kit.Marked("Hello.")))
	if err != nil {
		t.Fatal(err)
	}
	refusal, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(refusal), `"quota":"logBytes"`) {
		t.Errorf("new run: got %s %s (%v), want 429 for logBytes", resp.Status, refusal, err)
	}
	f.Approve(t)
	messages := kit.ShownMessages(t, in.Messages, f.Events)
	if last := messages[len(messages)-1]; last.Content != thanks {
		t.Errorf("last message = %.100q, want the one of the last step", last.Content)
	}
	if n := len(kit.SharedModel.Calls(t, task)); n != 2 {
		t.Errorf("model calls of the subagent: got %d, want 2", n)
	}
}

// awaitQuota waits until the list of quotas has texts, in one line of JSON.
func awaitQuota(t *testing.T, p *kit.Endpoint, texts ...string) {
	t.Helper()
	for late := time.After(kit.WaitTimeout); ; {
		resp, err := p.Get(t.Context(), "/v1/quotas", "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		missing := ""
		for _, text := range texts {
			if !strings.Contains(string(body), text) {
				missing = text
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-late:
			t.Fatalf("quotas = %s, want %s", body, missing)
		case <-time.After(50 * time.Millisecond): // poll interval
		}
	}
}
