package kit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"go.temporal.io/api/enums/v1"
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
		t.Fatalf("messages: got %d, %v, want %d", resp.StatusCode, err, http.StatusOK)
	}
	return read.State
}

// Approve approves the only interrupt of a thread whose run a follower has read to its end, and
// reads on until a run succeeds.
func (f *Follower) Approve(t *testing.T) {
	t.Helper()
	asked := InterruptsOf(t, f.Events)
	if len(asked) != 1 {
		t.Fatalf("interrupts of the run = %+v, want one", asked)
	}
	if status, a := Decide(t, f.Endpoint, f.In.ThreadID, asked[0].ID, `{"decision":"approve"}`); status != http.StatusOK {
		t.Fatalf("approve: got %d %v, want %d", status, a, http.StatusOK)
	}
	f.AttachPath = "/v1/threads/" + f.In.ThreadID + "/events"
	f.UntilSuccess(t)
}

// Restart kills the process and starts it again.
func (p *Perdure) Restart(t *testing.T) {
	t.Helper()
	p.Kill()
	p.Start(t)
}

// PostThreadAction pauses or resumes a thread and checks the HTTP status.
func PostThreadAction(t *testing.T, p *Endpoint, in Input, what string, status int) {
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

// AwaitWorkflowType waits until the thread's workflow has a type.
func AwaitWorkflowType(t *testing.T, p *Endpoint, in Input, workflowType string) {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
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

// AwaitActivity waits until the thread's workflow has an activity of a type that has started.
func AwaitActivity(ctx context.Context, p *Endpoint, in Input, activityType string) error {
	c, err := p.DialTemporal(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		now, err := c.DescribeWorkflowExecution(ctx, "thread/default/"+in.ThreadID, "")
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", activityType, err)
		}
		for _, a := range now.GetPendingActivities() {
			if a.GetActivityType().GetName() == activityType && a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
				return nil
			}
		}
	}
}

// WantOutcome checks the outcome of a run that a follower has read to its end.
func WantOutcome(t *testing.T, f *Follower, want string) {
	t.Helper()
	if last := f.Events[len(f.Events)-1]; Outcome(last) != want {
		t.Errorf("the run ended with %s, want %s", last.Data, want)
	}
}

// Superseded returns the messages that inputs have removed from a thread's conversation.
func (p *Perdure) Superseded(t *testing.T, thread string) []Message {
	t.Helper()
	var tails struct{ Items []struct{ RunID string } }
	p.GetJSON(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded?limit=500", &tails)
	var all []Message
	for _, tail := range tails.Items {
		var page struct{ Items []Message }
		p.GetJSON(t, "/v1/threads/"+url.PathEscape(thread)+"/superseded/"+url.PathEscape(tail.RunID)+"?limit=500", &page)
		all = append(all, page.Items...)
	}
	return all
}

// PerdureProps returns forwardedProps with Perdure's own members.
func PerdureProps(props map[string]any) map[string]any { return map[string]any{"perdure": props} }

// NextRun returns the input of the thread's next run. Its client has not seen the answers of
// earlier runs.
func (in Input) NextRun(runID, onBusy string, next Message) Input {
	in.RunID, in.Messages = runID, append(slices.Clone(in.Messages), next)
	in.ForwardedProps = PerdureProps(map[string]any{"onBusy": onBusy})
	return in
}

// ExecutionsOf returns the number of executions of a thread's workflow.
func (p *Endpoint) ExecutionsOf(t *testing.T, in Input) int {
	t.Helper()
	c, err := p.DialTemporal(t.Context())
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

// Delete deletes a thread and returns the HTTP status.
func (p *Endpoint) Delete(t *testing.T, thread string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, p.URL("/v1/threads/"+url.PathEscape(thread)), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // the body is not read
	return resp.StatusCode
}

// MessagesOf returns the conversation of a thread.
func (p *Endpoint) MessagesOf(t *testing.T, thread string) []Message {
	t.Helper()
	var page struct {
		Items []Message `json:"items"`
	}
	p.GetJSON(t, "/v1/threads/"+url.PathEscape(thread)+"/messages", &page)
	return page.Items
}
