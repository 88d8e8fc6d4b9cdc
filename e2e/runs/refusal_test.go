package runs

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestRefusals: invalid input is refused before a workflow starts, with a problem that points at
// the member.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const rest = `"messages":[{"id":"m","role":"user","content":"zq7content hello"}]`
	for name, tt := range map[string]struct {
		path, body    string // $ is replaced by a thread id
		status        int
		code, pointer string
	}{
		"unknown agent":     {path: "/v1/agents/nobody/runs", body: `{"threadId":"$","runId":"r",` + rest + `}`, status: 404, code: "unknown_agent"},
		"no JSON":           {body: `{"threadId":"$","runId":`, status: 400, code: "invalid_input"},
		"no body":           {body: ``, status: 400, code: "invalid_input"},
		"text":              {body: `hello`, status: 400, code: "invalid_input"},
		"array":             {body: `[]`, status: 400, code: "invalid_input"},
		"null":              {body: `null`, status: 400, code: "invalid_input"},
		"two documents":     {body: `{"threadId":"$","runId":"r",` + rest + `}{}`, status: 400, code: "invalid_input"},
		"no thread id":      {body: `{"runId":"r",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/threadId"},
		"no run id":         {body: `{"threadId":"$",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/runId"},
		"empty thread id":   {body: `{"threadId":"","runId":"r",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/threadId"},
		"empty run id":      {body: `{"threadId":"$","runId":"",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/runId"},
		"thread id, number": {body: `{"threadId":7,"runId":"r",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/threadId"},
		"long run id":       {body: `{"threadId":"$","runId":"` + strings.Repeat("r", 1001) + `",` + rest + `}`, status: 400, code: "invalid_input", pointer: "/runId"},
		"no messages":       {body: `{"threadId":"$","runId":"r"}`, status: 400, code: "invalid_input", pointer: "/messages"},
		"messages, object":  {body: `{"threadId":"$","runId":"r","messages":{}}`, status: 400, code: "invalid_input", pointer: "/messages"},
		"message, text":     {body: `{"threadId":"$","runId":"r","messages":["zq7content"]}`, status: 400, code: "invalid_input", pointer: "/messages/0"},
		"message, no id":    {body: `{"threadId":"$","runId":"r","messages":[{"role":"user","content":"x"}]}`, status: 400, code: "invalid_input", pointer: "/messages/0/id"},
		"message, no role":  {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","content":"x"}]}`, status: 400, code: "invalid_input", pointer: "/messages/0/role"},
		"role, number":      {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":7,"content":"x"}]}`, status: 400, code: "invalid_input", pointer: "/messages/0/role"},
		"content, number":   {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":"user","content":1}]}`, status: 400, code: "invalid_input", pointer: "/messages/0/content"},
		"tools, object":     {body: `{"threadId":"$","runId":"r","tools":{},` + rest + `}`, status: 400, code: "invalid_input", pointer: "/tools"},
		"history, unknown":  {body: `{"threadId":"$","runId":"r","forwardedProps":{"perdure":{"history":"x"}},` + rest + `}`, status: 400, code: "invalid_input", pointer: "/forwardedProps/perdure/history"},
		"protocol 2.0":      {body: `{"threadId":"$","runId":"r","protocolVersion":"2.0",` + rest + `}`, status: 400, code: "unsupported_protocol_version", pointer: "/protocolVersion"},
		"too large":         {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":"user","content":"` + strings.Repeat("zq7content ", 1<<20) + `"}]}`, status: 413, code: "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thread, path := kit.NewThread(), kit.AssistantPath
			if tt.path != "" {
				path = tt.path
			}
			resp, err := kit.Shared.Post(t.Context(), path, strings.ReplaceAll(tt.body, "$", thread))
			p := kit.ReadProblem(t, resp, err)
			if p.Status != tt.status || p.Code != tt.code || p.Pointer != tt.pointer {
				t.Errorf("%d %s at %q, want %d %s at %q (%s)", p.Status, p.Code, p.Pointer, tt.status, tt.code, tt.pointer, p.Detail)
			}
			wantNothingStarted(t, kit.Input{ThreadID: thread, RunID: "r"})
		})
	}
}

func wantNothingStarted(t *testing.T, in kit.Input) {
	t.Helper()
	resp, err := kit.Shared.Get(t.Context(), kit.EventsPath(in), "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 404 || p.Code != "unknown_run" {
		t.Errorf("the run's events: %d %s, want 404 unknown_run", p.Status, p.Code)
	}
}

func TestUnknownRun(t *testing.T) {
	t.Parallel()
	in := kit.Input{ThreadID: kit.NewThread(), RunID: "run-1"}
	wantNothingStarted(t, in)
	resp, err := kit.Shared.Post(t.Context(), kit.CancelPath(in), "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 404 || p.Code != "unknown_run" {
		t.Errorf("cancel: %d %s, want 404 unknown_run", p.Status, p.Code)
	}
}

func TestUnknownRoute(t *testing.T) {
	t.Parallel()
	resp, err := kit.Shared.Get(t.Context(), "/v1/nothing", "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 404 || p.Code != "not_found" {
		t.Errorf("%d %s, want 404 not_found", p.Status, p.Code)
	}
	resp, err = kit.Shared.Get(t.Context(), kit.AssistantPath, "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 405 || p.Code != "method_not_allowed" {
		t.Errorf("GET of a POST route: %d %s, want 405 method_not_allowed", p.Status, p.Code)
	}
}

// TestAgents: agents are described without their instructions.
func TestAgents(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/agents", "/v1/agents/assistant"} {
		resp, err := kit.Shared.Get(t.Context(), path, "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, resp.Status, err)
		}
		if text := string(body); !strings.Contains(text, "calculate") || strings.Contains(text, "under test") {
			t.Error(path, fmt.Sprintf("%.500s", text))
		}
	}
}

// TestBrowser: pages served from this machine may call the API, other pages may not.
func TestBrowser(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{"http://localhost:3000": "http://localhost:3000", "https://elsewhere.example": ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, kit.Shared.URL(kit.AssistantPath), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		req.Header.Set("Access-Control-Request-Method", http.MethodPost)
		req.Header.Set("Access-Control-Request-Headers", "content-type")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("%s: %s, allowed origin %q, want %q", origin, resp.Status, got, want)
		}
	}
}
