package runs

import (
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
		path, body            string // $ is replaced by a thread id
		wantStatus            int
		wantCode, wantPointer string
	}{
		"unknown agent":     {path: "/v1/agents/nobody/runs", body: `{"threadId":"$","runId":"r",` + rest + `}`, wantStatus: 404, wantCode: "unknown_agent"},
		"no JSON":           {body: `{"threadId":"$","runId":`, wantStatus: 400, wantCode: "invalid_input"},
		"no body":           {body: ``, wantStatus: 400, wantCode: "invalid_input"},
		"text":              {body: `hello`, wantStatus: 400, wantCode: "invalid_input"},
		"array":             {body: `[]`, wantStatus: 400, wantCode: "invalid_input"},
		"null":              {body: `null`, wantStatus: 400, wantCode: "invalid_input"},
		"two documents":     {body: `{"threadId":"$","runId":"r",` + rest + `}{}`, wantStatus: 400, wantCode: "invalid_input"},
		"no thread id":      {body: `{"runId":"r",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/threadId"},
		"no run id":         {body: `{"threadId":"$",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/runId"},
		"empty thread id":   {body: `{"threadId":"","runId":"r",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/threadId"},
		"empty run id":      {body: `{"threadId":"$","runId":"",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/runId"},
		"thread id, number": {body: `{"threadId":7,"runId":"r",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/threadId"},
		"long run id":       {body: `{"threadId":"$","runId":"` + strings.Repeat("r", 1001) + `",` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/runId"},
		"no messages":       {body: `{"threadId":"$","runId":"r"}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages"},
		"messages, object":  {body: `{"threadId":"$","runId":"r","messages":{}}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages"},
		"message, text":     {body: `{"threadId":"$","runId":"r","messages":["zq7content"]}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages/0"},
		"message, no id":    {body: `{"threadId":"$","runId":"r","messages":[{"role":"user","content":"x"}]}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages/0/id"},
		"message, no role":  {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","content":"x"}]}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages/0/role"},
		"role, number":      {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":7,"content":"x"}]}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages/0/role"},
		"content, number":   {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":"user","content":1}]}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/messages/0/content"},
		"tools, object":     {body: `{"threadId":"$","runId":"r","tools":{},` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/tools"},
		"history, unknown":  {body: `{"threadId":"$","runId":"r","forwardedProps":{"perdure":{"history":"x"}},` + rest + `}`, wantStatus: 400, wantCode: "invalid_input", wantPointer: "/forwardedProps/perdure/history"},
		"protocol 2.0":      {body: `{"threadId":"$","runId":"r","protocolVersion":"2.0",` + rest + `}`, wantStatus: 400, wantCode: "unsupported_protocol_version", wantPointer: "/protocolVersion"},
		"too large":         {body: `{"threadId":"$","runId":"r","messages":[{"id":"m","role":"user","content":"` + strings.Repeat("zq7content ", 1<<20) + `"}]}`, wantStatus: 413, wantCode: "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thread, path := kit.NewThread(), kit.AssistantPath
			if tt.path != "" {
				path = tt.path
			}
			resp, err := kit.Shared.Post(t.Context(), path, strings.ReplaceAll(tt.body, "$", thread))
			p := kit.ReadProblem(t, resp, err)
			if p.Status != tt.wantStatus || p.Code != tt.wantCode || p.Pointer != tt.wantPointer {
				t.Errorf("%d %s at %q, want %d %s at %q (%s)", p.Status, p.Code, p.Pointer, tt.wantStatus, tt.wantCode, tt.wantPointer, p.Detail)
			}
			wantNothingStarted(t, kit.Input{ThreadID: thread, RunID: "r"})
		})
	}
}

// wantNothingStarted checks that a run does not exist.
func wantNothingStarted(t *testing.T, in kit.Input) {
	t.Helper()
	resp, err := kit.Shared.Get(t.Context(), kit.EventsPath(in), "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 404 || p.Code != "unknown_run" {
		t.Errorf("the run's events: %d %s, want 404 unknown_run", p.Status, p.Code)
	}
}

func TestCancelInUnknownThread(t *testing.T) {
	t.Parallel()
	in := kit.Input{ThreadID: kit.NewThread(), RunID: "run-1"}
	wantNothingStarted(t, in)
	resp, err := kit.Shared.Post(t.Context(), kit.CancelPath(in), "")
	if p := kit.ReadProblem(t, resp, err); p.Status != 404 || p.Code != "unknown_thread" {
		t.Errorf("cancel: %d %s, want 404 unknown_thread", p.Status, p.Code)
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
			t.Fatalf("%s: got %s %v, want %d", path, resp.Status, err, http.StatusOK)
		}
		if text := string(body); !strings.Contains(text, "calculate") || strings.Contains(text, "under test") {
			t.Errorf("%s = %.500s, want the agent without its instructions", path, text)
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
