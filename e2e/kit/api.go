package kit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Message is an AG-UI message with the members that tests compare.
type Message struct {
	ID         string     `json:"id"`
	Role       string     `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCallID string     `json:"toolCallId,omitempty"`
	ToolCalls  []toolCall `json:"toolCalls,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Input is a RunAgentInput as client 1.0 sends it.
type Input struct {
	ThreadID        string    `json:"threadId"`
	RunID           string    `json:"runId"`
	Messages        []Message `json:"messages"`
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	State           any       `json:"state,omitempty"`
	Tools           []any     `json:"tools,omitempty"`
	Resume          []any     `json:"resume,omitempty"`
	ForwardedProps  any       `json:"forwardedProps,omitempty"`
}

// UserMessage returns a user message with a new id.
func UserMessage(text string) Message {
	return Message{ID: "msg-" + rand.Text(), Role: "user", Content: text}
}

// NewThread returns a thread id that no other test uses.
func NewThread() string { return "thread-" + rand.Text() }

// NewInput returns the input of the first run of a new thread.
func NewInput(prompt string) Input {
	return Input{ThreadID: NewThread(), RunID: "run-1", ProtocolVersion: "1.0", Messages: []Message{UserMessage(prompt)}}
}

// AssistantPath is the path that starts runs of the agent assistant.
const AssistantPath = "/v1/agents/assistant/runs"

// EventsPath returns the path of a run's events.
func EventsPath(in Input) string {
	return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/runs/" + url.PathEscape(in.RunID) + "/events"
}

// CancelPath returns the path that cancels a run.
func CancelPath(in Input) string {
	return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/runs/" + url.PathEscape(in.RunID) + "/cancel"
}

// Post sends a body: a string unchanged, any other value as JSON.
func (p *Endpoint) Post(ctx context.Context, path string, body any) (*http.Response, error) {
	raw, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		raw = string(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(path), bytes.NewReader([]byte(raw)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// Get requests a path, with lastEventID as Last-Event-ID; "" = without the header.
func (p *Endpoint) Get(ctx context.Context, path, lastEventID string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(path), nil)
	if err != nil {
		return nil, err
	}
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	return http.DefaultClient.Do(req)
}

// problem is a response body of type application/problem+json.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Pointer   string `json:"pointer"`
	ActiveRun string `json:"activeRun"`
	Counted   bool   `json:"counted"`
}

// ReadProblem returns the problem in the response to a refused request.
func ReadProblem(t *testing.T, resp *http.Response, err error) problem {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("%s with the content type %q, want a problem: %.300s", resp.Status, got, body)
	}
	var p problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if p.Status != resp.StatusCode || p.Type == "" || p.Title == "" {
		t.Errorf("status = %d, want a problem with the same: %s", resp.StatusCode, body)
	}
	return p
}

// Cancel cancels a run and returns the HTTP status.
func (p *Endpoint) Cancel(t *testing.T, in Input) int {
	t.Helper()
	resp, err := p.Post(t.Context(), CancelPath(in), map[string]string{"reason": Marked("enough")})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
