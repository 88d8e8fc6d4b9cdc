package kit

import (
	"encoding/json"
	"fmt"
	"testing"
)

const Careful = "/v1/agents/careful/runs"

// Interrupt is a question that a run has ended with.
type Interrupt struct {
	ID         string `json:"id"`
	Reason     string `json:"reason"`
	ToolCallID string `json:"toolCallId"`
	ExpiresAt  string `json:"expiresAt"`

	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
}

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

// WorksOut lets the model ask for calculations, and say something when it has the results.
func WorksOut(t *testing.T, prompt, then string, expressions ...string) {
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

// ResultsOf returns the results of tool calls that a model was sent last.
func ResultsOf(t *testing.T, prompt string) []string {
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

// Decide decides about a call over REST and returns the status and what was answered.
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

// FollowThread reads a thread from its beginning, run after run.
func (p *Endpoint) FollowThread(t *testing.T, in Input) *Follower {
	t.Helper()
	f := p.Reader(t, in)
	f.View = ThreadPath(in)
	if err := f.Connect(); err != nil {
		t.Fatal(err)
	}
	return f
}

// UntilSuccess reads a thread to the end of the run that succeeds, past those that ask.
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
			t.Fatalf("a run ended with %s", e.Data)
		}
	}
}

func (p *Endpoint) RunAgent(t *testing.T, path string, in Input) []Event {
	t.Helper()
	f := p.FollowAgent(t, path, in)
	f.Finish(t)
	return f.Events
}

// InboxOf returns what waits on a thread, as soon as the inbox has it.
func (p *Endpoint) InboxOf(t *testing.T, in Input) map[string]any {
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
		if len(page.Items) > 0 {
			return page.Items[0]
		}
	}
}

// UntilAsked reads a thread to the end of a run that asks something of a kind.
func (f *Follower) UntilAsked(t *testing.T, reason string) []Interrupt {
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
