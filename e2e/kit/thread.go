package kit

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// StateOf returns a thread's state.
func (p *Endpoint) StateOf(t *testing.T, in Input) map[string]any {
	t.Helper()
	resp, err := p.Get(t.Context(), "/v1/threads/"+in.ThreadID+"/state", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var read struct {
		State map[string]any `json:"state"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&read); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d: %v", resp.StatusCode, err)
	}
	return read.State
}

// Approve approves the one question of a thread that a follower has read to its end, and reads on
// to the end of what goes on with it.
func (f *Follower) Approve(t *testing.T) {
	t.Helper()
	asked := InterruptsOf(t, f.Events)
	if len(asked) != 1 {
		t.Fatalf("it asks %+v", asked)
	}
	if status, a := Decide(t, f.P, f.In.ThreadID, asked[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: %d %v", status, a)
	}
	f.View = "/v1/threads/" + f.In.ThreadID + "/events"
	f.UntilSuccess(t)
}

// Restart kills the process, and starts it again.
func (p *Perdure) Restart(t *testing.T) {
	t.Helper()
	p.Kill()
	p.Start(t)
}

// TellThread pauses or resumes what runs on a thread.
func TellThread(t *testing.T, p *Endpoint, in Input, what string, status int) {
	t.Helper()
	resp, err := p.Post(t.Context(), "/v1/threads/"+in.ThreadID+"/"+what, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != status {
		t.Errorf("%s: %s, want %d", what, resp.Status, status)
	}
}

// AwaitType waits until a thread's workflow is of a type.
func AwaitType(t *testing.T, p *Endpoint, in Input, workflowType string) {
	t.Helper()
	c, err := p.Temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for {
		now, err := c.DescribeWorkflowExecution(t.Context(), "thread/default/"+in.ThreadID, "")
		if err != nil {
			t.Fatalf("waiting for %s: %v", workflowType, err)
		}
		if now.GetWorkflowExecutionInfo().GetType().GetName() == workflowType {
			return
		}
	}
}

func WantOutcome(t *testing.T, f *Follower, want string) {
	t.Helper()
	if last := f.Events[len(f.Events)-1]; Outcome(last) != want {
		t.Errorf("the run ended with %s, want %s", last.Data, want)
	}
}

// Superseded returns the messages that inputs removed from the conversation of a thread.
func (p *Perdure) Superseded(t *testing.T, thread string) []Message {
	t.Helper()
	var tails struct{ Items []struct{ RunID string } }
	p.Ask(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded?limit=500", &tails)
	var all []Message
	for _, tail := range tails.Items {
		var page struct{ Items []Message }
		p.Ask(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded/"+url.PathEscape(tail.RunID)+"?limit=500", &page)
		all = append(all, page.Items...)
	}
	return all
}

// Asks returns what a client wants of us beside what the protocol has.
func Asks(props map[string]any) map[string]any { return map[string]any{"perdure": props} }

// After returns the next run of a thread, whose client has not seen the answers of those before it.
func (in Input) After(runID, onBusy string, next Message) Input {
	in.RunID, in.Messages = runID, append(slices.Clone(in.Messages), next)
	in.ForwardedProps = Asks(map[string]any{"onBusy": onBusy})
	return in
}

// ExecutionsOf counts the executions that a thread has had.
func (p *Endpoint) ExecutionsOf(t *testing.T, in Input) int {
	t.Helper()
	c, err := p.Temporal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := ListExecutions(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range all {
		if e.GetExecution().GetWorkflowId() == "thread/default/"+in.ThreadID {
			n++
		}
	}
	return n
}

// Delete deletes a thread and returns the status of the answer.
func (p *Endpoint) Delete(t *testing.T, thread string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.Url("/v1/threads/"+url.PathEscape(thread)), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing of it is read
	return resp.StatusCode
}

// Conversation returns what a thread has by now.
func (p *Endpoint) Conversation(t *testing.T, thread string) []Message {
	t.Helper()
	var page struct {
		Items []Message `json:"items"`
	}
	p.Ask(t, "/v1/threads/"+url.PathEscape(thread)+"/messages", &page)
	return page.Items
}
