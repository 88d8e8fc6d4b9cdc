package e2e

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

// message is a message as AG-UI has it, as far as tests look.
type message struct {
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

// input is a RunAgentInput as client 1.0 sends it.
type input struct {
	ThreadID        string    `json:"threadId"`
	RunID           string    `json:"runId"`
	Messages        []message `json:"messages"`
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	State           any       `json:"state,omitempty"`
	Tools           []any     `json:"tools,omitempty"`
	Resume          []any     `json:"resume,omitempty"`
	ForwardedProps  any       `json:"forwardedProps,omitempty"`
}

func user(text string) message { return message{ID: "msg-" + rand.Text(), Role: "user", Content: text} }

// newThread returns an id that no other test uses.
func newThread() string { return "thread-" + rand.Text() }

// newInput returns the first run of a thread of its own.
func newInput(prompt string) input {
	return input{ThreadID: newThread(), RunID: "run-1", ProtocolVersion: "1.0", Messages: []message{user(prompt)}}
}

const assistant = "/v1/agents/assistant/runs"

func eventsPath(in input) string {
	return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/runs/" + url.PathEscape(in.RunID) + "/events"
}

func cancelPath(in input) string {
	return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/runs/" + url.PathEscape(in.RunID) + "/cancel"
}

// post sends a body: a string as it is, anything else as JSON.
func (p *endpoint) post(ctx context.Context, path string, body any) (*http.Response, error) {
	raw, ok := body.(string)
	if !ok {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		raw = string(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url(path), bytes.NewReader([]byte(raw)))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// get asks for events behind an id; "" = from the start.
func (p *endpoint) get(ctx context.Context, path, lastEventID string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(path), nil)
	if err != nil {
		return nil, err
	}
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	return http.DefaultClient.Do(req)
}

// problem is an answer of application/problem+json.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Pointer   string `json:"pointer"`
	ActiveRun string `json:"activeRun"`
}

// refused reads the problem that a request was refused with.
func refused(t *testing.T, resp *http.Response, err error) problem {
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
		t.Fatalf("%s with Content-Type %q: %.300s", resp.Status, got, body)
	}
	var p problem
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if p.Status != resp.StatusCode || p.Type == "" || p.Title == "" {
		t.Errorf("HTTP %d with the problem %s", resp.StatusCode, body)
	}
	return p
}

// cancel cancels a run and returns the status of the answer.
func (p *endpoint) cancel(t *testing.T, in input) int {
	t.Helper()
	resp, err := p.post(t.Context(), cancelPath(in), map[string]string{"reason": say("enough")})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
