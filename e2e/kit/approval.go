package kit

import (
	"encoding/json"
	"fmt"
	"testing"
)

// CarefulPath is the path that starts runs of the agent careful, whose tool calls need approval.
const CarefulPath = "/v1/agents/careful/runs"

// Interrupt is an interrupt with which a run ended.
type Interrupt struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	ToolCallID string `json:"toolCallId"`
	ExpiresAt  string `json:"expiresAt"`

	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}

// InterruptsOf returns the interrupts with which a run ended. A run without interrupts fails the
// test.
func InterruptsOf(t *testing.T, events []Event) []Interrupt {
	t.Helper()
	var end struct {
		Outcome struct {
			Interrupts []Interrupt `json:"interrupts"`
		} `json:"outcome"`
	}
	last := events[len(events)-1]
	if err := json.Unmarshal(last.Data, &end); err != nil {
		t.Fatal(err)
	}
	if Outcome(last) != "interrupt" || len(end.Outcome.Interrupts) == 0 {
		t.Fatalf("the run ended with %s, want questions", last.Data)
	}
	return end.Outcome.Interrupts
}

// ScriptCalculations makes the model call the calculator once for each expression, and answer with
// then when it has the results.
func ScriptCalculations(t *testing.T, prompt, then string, expressions ...string) {
	t.Helper()
	yes, no := true, false
	var calls []ModelCall
	for _, e := range expressions {
		calls = append(calls, ModelCall{Name: "calculate", Arguments: fmt.Sprintf(`{"expression":%q}`, e)})
	}
	SharedModel.Answer(t,
		Fixture{Match: Match{UserMessage: prompt, HasToolResult: &no}, Response: Response{ToolCalls: calls}},
		Fixture{Match: Match{UserMessage: prompt, HasToolResult: &yes}, Response: Response{Content: then}})
}

// ToolResultsSent returns the tool results in the last model call for the prompt.
func ToolResultsSent(t *testing.T, prompt string) []string {
	t.Helper()
	calls := SharedModel.Calls(t, prompt)
	var results []string
	for _, m := range calls[len(calls)-1].Body.Messages {
		if m.Role == "tool" {
			results = append(results, m.Text())
		}
	}
	return results
}

// Decide sends a decision about an interrupt over REST and returns the HTTP status and the
// response.
func Decide(t *testing.T, p *Endpoint, threadID, id, body string) (int, map[string]any) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/threads/"+threadID+"/approvals/"+id, json.RawMessage(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, answer
}

// FollowThread reads a thread over all its runs, beginning with the last one.
func (p *Endpoint) FollowThread(t *testing.T, in Input) *Follower {
	t.Helper()
	f := p.NewFollower(t, in)
	f.AttachPath = ThreadPath(in)
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// UntilSuccess reads a thread to the end of the first run that succeeds. It passes over runs that
// end with interrupts.
func (f *Follower) UntilSuccess(t *testing.T) {
	t.Helper()
	for {
		e, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Terminal() && Outcome(e) == "success" {
			return
		}
		if e.Type == "RUN_ERROR" {
			t.Fatalf("end of a run = %s, want no error", e.Data)
		}
	}
}

// RunAgent runs the agent of a path to the end of its run and returns the events.
func (p *Endpoint) RunAgent(t *testing.T, path string, in Input) []Event {
	t.Helper()
	f := p.FollowAgent(t, path, in)
	f.Finish(t)
	return f.Events
}

// AwaitInboxItem waits until the inbox lists an open interrupt of the thread, and returns it. The
// inbox follows the log, so an interrupt that was decided a moment ago may still be listed.
func (p *Endpoint) AwaitInboxItem(t *testing.T, in Input, interruptID string) map[string]any {
	t.Helper()
	for {
		resp, err := p.Get(t.Context(), "/v1/approvals?thread="+in.ThreadID, "")
		if err != nil {
			t.Fatal(err)
		}
		var page struct{ Items []map[string]any }
		err = json.NewDecoder(resp.Body).Decode(&page)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if item["id"] == interruptID {
				return item
			}
		}
	}
}

// UntilInterrupt reads a thread to the end of a run whose first interrupt has the given reason.
func (f *Follower) UntilInterrupt(t *testing.T, reason string) []Interrupt {
	t.Helper()
	for {
		e, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !e.Terminal() {
			continue
		}
		if asked := InterruptsOf(t, f.Events); asked[0].Reason == reason {
			return asked
		}
	}
}
