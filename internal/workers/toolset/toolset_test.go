package toolset_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/workers/toolset"
	"github.com/perdure/perdure/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the tools of a file.
func open(t *testing.T, text string) (*toolset.Set, error) {
	t.Helper()
	folder := &agents.Folder{}
	if text != "" {
		var err error
		if folder, err = agents.ParseFile("all.yaml", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return toolset.Open(toolset.Config{
		Folder: folder, AllowPrivate: true, Logger: slog.New(slog.DiscardHandler),
		Getenv: func(name string) string { return map[string]string{"PERDURE_SECRET_SHOP": "token"}[name] },
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+r.RequestURI)
	}))
	t.Cleanup(server.Close)
	set, err := open(t, `
kind: tool
name: get_order
description: Finds an order.
parameters: {type: object, required: [id], properties: {id: {type: string, pattern: "^[0-9]+$"}}}
http: {method: GET, url: "`+server.URL+`/orders/{id}", headers: {Authorization: "Bearer ${secret:SHOP}"}, timeout: 5s}
idempotent: true
attempts: 2
---
kind: mcp
name: away
url: http://127.0.0.1:1/
`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	found, err := set.Registry().Select([]string{"get_order", "calculate"})
	if err != nil {
		t.Fatal(err)
	}
	spec := found[0].Spec()
	if spec.Timeout.String() != "5s" || !spec.Idempotent || spec.Attempts != 2 || spec.Description != "Finds an order." {
		t.Errorf("specification = %+v, want that of the file", spec)
	}
	result, err := found[0].Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"id":"7"}`)})
	if want := (tools.Result{Content: "Bearer [secret] /orders/7"}); err != nil || cmp.Diff(want, result) != "" {
		t.Errorf("call = %+v, %v, want %+v", result, err, want)
	}
	if result, err := found[0].Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"id":"x"}`)}); err != nil || !result.IsError {
		t.Errorf("invalid arguments: got %+v, %v, want a failure", result, err)
	}
	if _, err := set.Registry().Select([]string{"mcp:away/*"}); err == nil || !strings.Contains(err.Error(), "was not reached yet") {
		t.Errorf("server that is away: got %v, want that it was not reached yet", err)
	}
}

func TestErrorsNameLines(t *testing.T) {
	t.Parallel()
	const request = "http: {method: GET, url: \"https://shop.example/\"}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"all mistakes together", "kind: tool\nname: a\nhttp:\n  method: GET\n  url: nowhere\n---\nkind: mcp\nname: b\nurl: nowhere\n", `all.yaml:5: http.url must begin with https:// or http://
all.yaml:9: url must begin with https:// or http:// and have a host`},
		{"secret", "kind: tool\nname: a\nhttp:\n  method: GET\n  url: https://shop.example\n  headers: {A: \"${secret:GONE}\"}\n",
			"all.yaml:6: http.headers cannot be sent: secret GONE is missing: the worker has no PERDURE_SECRET_GONE"},
		{"schema", "kind: tool\nname: a\n" + request + "parameters: {type: objekt}\n", `all.yaml:4: tool "a": the parameters are not a valid schema`},
		{"reference", "kind: tool\nname: a\n" + request + "parameters: {$ref: \"https://shop.example/schema\"}\n", `all.yaml:4: tool "a": the parameters are not a valid schema`},
		{"built in", "kind: tool\nname: calculate\n" + request, `tool "calculate": two tools have this name: Go and all.yaml:1`},
		{"server's", "kind: tool\nname: b_x\n" + request + "---\nkind: mcp\nname: b\nurl: http://127.0.0.1:1\n",
			`tool "b_x": all.yaml:1: the name begins like the tools of b (all.yaml:5)`},
		{"agent's", "name: a\nmodel: m/m\ntools: [\"calc*\", \"agent:calculate\"]\n", "agent definition: agent a: agent:calculate and a tool have the same name for the model"},
		{"built in, server's", "kind: mcp\nname: current\nurl: http://127.0.0.1:1\n", `tool "current_time": Go: the name begins like the tools of current (all.yaml:1)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set, err := open(t, tt.text)
			if err == nil {
				set.Close()
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestWorkersHaveOwnTools(t *testing.T) {
	t.Parallel()
	set, err := toolset.Open(toolset.Config{Getenv: os.Getenv, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if found, err := set.Registry().Select([]string{"*"}); err != nil || len(found) != 7 {
		t.Errorf("tools = %v, %v, want 7", found, err)
	}
}

// TestToolsOfOtherWorkers: a tool of a task queue that the worker does not serve is only described.
// The worker needs neither its secrets nor its server.
func TestToolsOfOtherWorkers(t *testing.T) {
	t.Parallel()
	folder, err := agents.ParseFile("all.yaml", []byte(`
kind: tool
name: open_till
http: {method: POST, url: "https://till.example/", headers: {Authorization: "${secret:GONE}"}}
taskQueue: till
parallel: false
---
kind: mcp
name: floor
command: [no-such-program-here]
taskQueue: floor
`))
	if err != nil {
		t.Fatal(err)
	}
	cfg := toolset.Config{Folder: folder, Getenv: func(string) string { return "" }, Logger: slog.New(slog.DiscardHandler)}
	if set, err := toolset.Open(cfg); err == nil {
		set.Close()
		t.Error("Open for all queues without their tools: got no error, want one")
	}
	cfg.Serves = func(queue string) bool { return queue == "" }
	set, err := toolset.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	if diff := cmp.Diff([]string{"floor", "till"}, set.TaskQueues()); diff != "" {
		t.Errorf("task queues (-want +got):\n%s", diff)
	}
	found, err := set.Registry().Select([]string{"open_till"})
	if err != nil {
		t.Fatal(err)
	}
	if s := found[0].Spec(); s.TaskQueue != "till" || s.Sequence != "open_till" {
		t.Errorf("specification = %+v, want the queue till and the sequence open_till", s)
	}
	if _, err := set.Registry().Select([]string{"mcp:floor/*"}); err == nil {
		t.Error("tools of a queue without workers: got no error, want one")
	}
	sweep, err := tools.Guard(tools.Func("floor_sweep", "Sweeps.", func(context.Context, struct{}) (string, error) { return "", nil }))
	if err != nil {
		t.Fatal(err)
	}
	set.LookElsewhere(func(server, queue string) ([]tools.Offer, error) {
		if server != "floor" || queue != "floor" {
			t.Errorf("lookup of %s on %s, want floor on floor", server, queue)
		}
		return []tools.Offer{{Name: "sweep", Tool: sweep}}, nil
	})
	if found, err := set.Registry().Select([]string{"mcp:floor/*"}); err != nil || len(found) != 1 || found[0].Spec().Name != "floor_sweep" {
		t.Errorf("tools = %v, %v, want floor_sweep", found, err)
	}
}
