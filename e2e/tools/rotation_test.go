package tools

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/e2e/kit"
)

// rotatedAgent is an agent whose model, HTTP tool and program need secrets.
const rotatedAgent = `name: clerk
model: openai/any
tools: [find_order, "mcp:spy/look"]
---
kind: mcp
name: spy
command: [%s, spy]
env: {SHOWN: "${secret:SHOWN}"}
---
kind: tool
name: find_order
description: Finds an order.
http: {method: GET, url: "%s/order", headers: {Authorization: "Bearer ${secret:SHOP_TOKEN}"}}
`

// keyServer is a model server and the server of a tool. It records the credentials of the requests.
type keyServer struct {
	mu   sync.Mutex
	seen []string
}

func (s *keyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	if r.URL.Path == "/order" {
		_, _ = io.WriteString(w, `{}`)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	delta, reason := `{"content":"Done."}`, "stop"
	if messages := string(body); strings.LastIndex(messages, `"role":"user"`) > strings.LastIndex(messages, `"role":"tool"`) {
		delta, reason = `{"tool_calls":[
			{"index":0,"id":"call_a","type":"function","function":{"name":"find_order","arguments":"{}"}},
			{"index":1,"id":"call_b","type":"function","function":{"name":"spy_look","arguments":"{}"}}]}`, "tool_calls"
	}
	delta = strings.Join(strings.Fields(delta), "")
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", delta, reason)
}

// take returns the credentials since the last call.
func (s *keyServer) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// secretVolume is a folder of secrets, as Kubernetes mounts it: all files are replaced by the rename
// of a symbolic link.
type secretVolume struct {
	dir      string
	revision int
}

// set replaces all secrets.
func (v *secretVolume) set(t *testing.T, secrets map[string]string) {
	t.Helper()
	v.revision++
	revision := fmt.Sprintf("..%d", v.revision)
	if err := os.Mkdir(filepath.Join(v.dir, revision), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, value := range secrets {
		if err := os.WriteFile(filepath.Join(v.dir, revision, name), []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(v.dir, name)
		if err := os.Symlink(filepath.Join("..data", name), link); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
	}
	next := filepath.Join(v.dir, "..next")
	if err := errors.Join(os.Symlink(revision, next), os.Rename(next, filepath.Join(v.dir, "..data"))); err != nil {
		t.Fatal(err)
	}
}

// TestRotatedSecretsAreUsed: after a rotation the next model call and the next tool call use the new
// secrets, without a restart of the worker.
func TestRotatedSecretsAreUsed(t *testing.T) {
	t.Parallel()
	s := &keyServer{}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	volume := &secretVolume{dir: t.TempDir()}
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Agents, p.Env = t.TempDir(), []string{"OPENAI_API_KEY=", "OPENAI_BASE_URL=" + server.URL + "/v1", "PERDURE_SECRETS_DIR=" + volume.dir}
	if err := os.WriteFile(filepath.Join(p.Agents, "all.yaml"), fmt.Appendf(nil, rotatedAgent, program, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	volume.set(t, map[string]string{"OPENAI_API_KEY": "key-1", "PERDURE_SECRET_SHOP_TOKEN": "token-1", "PERDURE_SECRET_SHOWN": "s-1"})
	p.InspectAtEnd(t)
	p.Start(t)
	for i, want := range [][]string{{"key-1", "token-1", "key-1"}, {"key-2", "token-2", "key-2"}} {
		if i > 0 {
			volume.set(t, map[string]string{"OPENAI_API_KEY": "key-2", "PERDURE_SECRET_SHOP_TOKEN": "token-2", "PERDURE_SECRET_SHOWN": "s-2"})
		}
		f := p.FollowAgent(t, "/v1/agents/clerk/runs", kit.NewInput(kit.Marked("Where is my order?")))
		f.Finish(t)
		if last := f.Events[len(f.Events)-1]; last.Type != "RUN_FINISHED" {
			t.Fatalf("end of the run = %s, want RUN_FINISHED", last.Data)
		}
		if diff := cmp.Diff(want, s.take()); diff != "" {
			t.Errorf("credentials of the requests (-want +got):\n%s", diff)
		}
		// A secret of 3 bytes is not redacted.
		if shown := fmt.Sprintf("SHOWN=s-%d", i+1); !slices.ContainsFunc(f.Events, func(e kit.Event) bool { return strings.Contains(e.Member("content"), shown) }) {
			t.Errorf("events of the run have no %s, want the environment of the program", shown)
		}
	}
}
