package models

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// relay forwards requests to the model server and records them, since the server's own journal has
// neither reasoning nor options.
type relay struct {
	url    string
	mu     sync.Mutex
	bodies [][]byte
}

// startRelay starts a server that relays the Responses API to the model.
func startRelay(t *testing.T, m *kit.Model) *relay {
	t.Helper()
	target, err := url.Parse(m.URL)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(req *httputil.ProxyRequest) { req.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, body)
		r.mu.Unlock()
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// modelRequest is a request of the Responses API.
type modelRequest struct {
	Store     *bool           `json:"store"`
	Include   []string        `json:"include"`
	Reasoning json.RawMessage `json:"reasoning"`
	Input     []struct {
		Type      string `json:"type"`
		Role      string `json:"role"`
		ID        string `json:"id"`
		Encrypted string `json:"encrypted_content"`
		Summary   []struct {
			Text string `json:"text"`
		} `json:"summary"`
	} `json:"input"`
}

// requests returns the requests that contain a text, in order.
func (r *relay) requests(t *testing.T, containing string) []modelRequest {
	t.Helper()
	var list []modelRequest
	for _, body := range r.containing(containing) {
		var a modelRequest
		if err := json.Unmarshal(body, &a); err != nil {
			t.Fatalf("the request is %s: %v", body, err)
		}
		list = append(list, a)
	}
	return list
}

// containing returns the bodies of the requests that contain a text, in order.
func (r *relay) containing(text string) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found [][]byte
	for _, body := range r.bodies {
		if bytes.Contains(body, []byte(text)) {
			found = append(found, body)
		}
	}
	return found
}

// items returns the types of the input items, and the roles of messages.
func (a modelRequest) items() string {
	var kinds []string
	for _, item := range a.Input {
		kind := item.Type
		if item.Role != "" {
			kind = item.Role
		}
		kinds = append(kinds, kind)
	}
	return strings.Join(kinds, " ")
}

// TestResponses: reasoning over the Responses API streams to the client. With the tool results it
// returns to the model, encrypted as it came, by way of the log.
func TestResponses(t *testing.T) {
	t.Parallel()
	relay := startRelay(t, kit.SharedModel)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = []string{"OPENAI_BASE_URL=" + relay.url + "/v1"}
	p.InspectAtEnd(t)
	p.Start(t)
	kit.EachGeneration(t, func(t *testing.T, g kit.Generation) {
		yes, no := true, false
		question, thought, answer := kit.UserMessage(kit.Marked("How much?")), kit.Marked("I had better calculate, 計算."), kit.Marked("It is 84.")
		next, last := kit.UserMessage(kit.Marked("Sure?")), kit.Marked("Sure.")
		call := kit.ModelCall{ID: "call_a", Name: "calculate", Arguments: `{"expression":"12*7"}`}
		kit.SharedModel.Answer(t,
			kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &no}, Response: kit.Response{Reasoning: thought, ToolCalls: []kit.ModelCall{call}}, ChunkSize: 3},
			kit.Fixture{Match: kit.Match{UserMessage: question.Content, HasToolResult: &yes}, Response: kit.Response{Content: answer}, ChunkSize: 3},
			kit.Fixture{Match: kit.Match{UserMessage: next.Content}, Response: kit.Response{Content: last}})
		d := g.Drive(t, p, kit.Script{URL: p.URL("/v1/agents/thinker/runs"), Runs: []kit.ScriptedRun{
			{RunID: "run-1", Messages: []kit.Message{question}}, {RunID: "run-2", Add: []kit.Message{next}},
		}})
		ends := d.Finish(t)

		var thoughts strings.Builder
		for _, raw := range d.Events(0, "REASONING_MESSAGE_CONTENT") {
			var event struct{ Delta string }
			if err := json.Unmarshal(raw, &event); err != nil {
				t.Fatal(err)
			}
			thoughts.WriteString(event.Delta)
		}
		if got := thoughts.String(); got != thought {
			t.Errorf("shown reasoning: got %q, want %q", got, thought)
		}
		if n := len(ends[0].Messages); n == 0 || ends[0].Messages[n-1].Content != answer {
			t.Errorf("the run ends with %+v, want %q", ends[0].Messages, answer)
		}
		if got := ends[1].Messages; len(got) == 0 || got[len(got)-1].Content != last {
			t.Errorf("the next run ends with %+v, want %q", ends[1], last)
		}
		requests := relay.requests(t, question.Content)
		if len(requests) != 3 {
			t.Fatalf("%d model calls, want 3", len(requests))
		}
		wantStateless(t, requests)
		wantThoughtReturned(t, requests, thought)
	})
}

// wantStateless checks that requests ask the provider to store nothing.
func wantStateless(t *testing.T, requests []modelRequest) {
	t.Helper()
	for _, a := range requests {
		if a.Store == nil || *a.Store || !cmp.Equal(a.Include, []string{"reasoning.encrypted_content"}) {
			t.Errorf("store is %v and include %v, want that nothing is kept at the provider", a.Store, a.Include)
		}
		if got, want := string(a.Reasoning), `{"effort":"low","summary":"auto"}`; got != want {
			t.Errorf("reasoning is %s, want %s", got, want)
		}
	}
}

// wantThoughtReturned checks that requests return the reasoning.
func wantThoughtReturned(t *testing.T, requests []modelRequest, thought string) {
	t.Helper()
	for i, want := range []string{
		"system user",
		"system user reasoning function_call function_call_output",
		"system user function_call function_call_output assistant user",
	} {
		if got := requests[i].items(); got != want {
			t.Errorf("model call %d has %s, want %s", i, got, want)
		}
	}
	if t.Failed() {
		return
	}
	item := requests[1].Input[2]
	// aimock does not encrypt, but binds the reasoning to the item's id as OpenAI does.
	if want := base64.StdEncoding.EncodeToString([]byte("aimock-encrypted-reasoning:" + item.ID)); item.Encrypted != want {
		t.Errorf("encrypted content is %q, want %q", item.Encrypted, want)
	}
	if len(item.Summary) != 1 || item.Summary[0].Text != thought {
		t.Errorf("the summary is %+v, want %q", item.Summary, thought)
	}
}
