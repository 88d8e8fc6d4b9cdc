package activities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// serveRemote serves a remote agent, and lets the fixture call it. respond writes the events of the n-th
// request, from 1, with RUN_STARTED and RUN_FINISHED of the requested run. It may read the request again.
func (f *fixture) serveRemote(respond func(n int, started, finished string, w http.ResponseWriter, r *http.Request)) (url string, requests *atomic.Int32) {
	f.t.Helper()
	requests = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in agui.RunAgentInput
		var body bytes.Buffer
		if err := json.NewDecoder(io.TeeReader(r.Body, &body)).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(&body)
		w.Header().Set("Content-Type", "text/event-stream")
		ids := fmt.Sprintf(`"threadId":%q,"runId":%q`, in.ThreadID, in.RunID)
		respond(int(requests.Add(1)), `{"type":"RUN_STARTED",`+ids+`}`, `{"type":"RUN_FINISHED",`+ids+`,"usage":[{"model":"there","totalTokens":7}]}`, w, r)
	}))
	f.t.Cleanup(s.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	f.acts.Remotes = activities.RemoteAgents{Client: remote.NewClient(transport), Secret: func(string) string { return "" }}
	return s.URL, requests
}

// writeEvents writes events with SSE IDs from first on.
func writeEvents(w http.ResponseWriter, first int, events ...string) {
	for i, e := range events {
		_, _ = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", first+i, e) // the client may have left
	}
	w.(http.Flusher).Flush()
}

// remoteText returns the events of a text message in two parts.
func remoteText(first, second string) []string {
	return []string{
		`{"type":"TEXT_MESSAGE_START","messageId":"m1","role":"assistant"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"` + first + `"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m1","delta":"` + second + `"}`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m1"}`,
	}
}

func noModel(int, *llm.Request) ([]llm.Chunk, error) { return textAnswer("nobody asked") }

// TestOutageBeforeRemoteRun: an attempt that ends before it has sent its request does not count as a
// run of the remote, whatever the definition says about retries.
func TestOutageBeforeRemoteRun(t *testing.T) {
	t.Parallel()
	for _, retry := range []string{agents.RetryNever, agents.RetryRestart, agents.RetryResume} {
		f := setup(t, noModel)
		url, requests := f.serveRemote(func(_ int, started, finished string, w http.ResponseWriter, _ *http.Request) {
			writeEvents(w, 1, append(append([]string{started}, remoteText("Hel", "lo")...), finished)...)
		})
		f.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url, Retry: retry}}
		f.outage.Store(3)
		if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
			t.Errorf("retry %s: got %+v, want success", retry, result)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("retry %s: %d requests, want 1", retry, n)
		}
	}
}

// TestUnreachableRemote: a run waits for an agent that accepts no connection longer than for one that
// refuses its requests. Attempts without a connection take none from those that are refused then.
func TestUnreachableRemote(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		closed   int32 // first connections that are refused
		busy     int   // first requests that are refused
		code     string
		attempts int32 // at a connection
	}{
		"comes late":            {23, 0, "", 24},
		"never comes":           {30, 0, string(remote.KindUnreachable), 24},
		"comes, and is busy":    {10, 7, "", 18},
		"comes, and stays busy": {10, 9, string(remote.KindUnavailable), 18},
	} {
		f := setup(t, noModel)
		url, _ := f.serveRemote(func(n int, started, finished string, w http.ResponseWriter, _ *http.Request) {
			if n <= tt.busy {
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			writeEvents(w, 1, started, finished)
		})
		var attempts atomic.Int32
		f.acts.Remotes.Client = remote.NewClient(&http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if attempts.Add(1) <= tt.closed {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}})
		f.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url}}
		if _, result := f.run("hello"); result.Code != tt.code || attempts.Load() != tt.attempts {
			t.Errorf("%s: code %q after %d attempts, want %q after %d", name, result.Code, attempts.Load(), tt.code, tt.attempts)
		}
	}
}

// TestCallOfRemoteForModel: a model of a later step gets a remote agent's call with an ID that all APIs
// of models take, and the result has the same.
func TestCallOfRemoteForModel(t *testing.T) {
	t.Parallel()
	var ids []string
	f := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		for _, m := range req.Messages {
			for _, c := range m.ToolCalls {
				ids = append(ids, c.ID)
			}
			if m.Role == llm.RoleTool {
				ids = append(ids, m.ToolCallID)
			}
		}
		return textAnswer("summed up")
	})
	url, _ := f.serveRemote(func(_ int, started, finished string, w http.ResponseWriter, _ *http.Request) {
		call := []string{
			`{"type":"TOOL_CALL_START","toolCallId":"call_of_a_provider_with_a_usual_ID","toolCallName":"book"}`,
			`{"type":"TOOL_CALL_END","toolCallId":"call_of_a_provider_with_a_usual_ID"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"call_of_a_provider_with_a_usual_ID","content":"booked"}`,
		}
		writeEvents(w, 1, append(append([]string{started}, call...), finished)...)
	})
	f.others = map[string]*agents.Definition{"far": parseDefinition(t, "name: far\nremote: {url: \""+url+"\"}\n")}
	f.agent = parseDefinition(t, "name: a\nmodel: test/m\nsteps:\n  - {name: room, agent: far}\n  - {name: sum, agent: {instructions: Sum up.}}\n")
	if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("got %+v, want success", result)
	}
	if len(ids) != 2 || ids[0] != ids[1] || len(ids[0]) > 40 || !strings.HasPrefix(ids[0], "call_") {
		t.Errorf("the model got the IDs %q, want the same twice, of at most 40 characters", ids)
	}
}

// TestSecretsOfTenantsAgents: a remote agent of a tenant gets no secret of the platform. It gets the
// tenant's own, and a remote agent of the platform gets both.
func TestSecretsOfTenantsAgents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ revision, header, code, sent string }{
		"a tenant's, with a secret of the platform": {stream.TenantRevision + "1", "${secret:TOKEN}", string(remote.KindInvalid), ""},
		"a tenant's, with its own":                  {stream.TenantRevision + "1", "${tenantSecret:TOKEN}", "", "of TOKEN.default"},
		"the platform's":                            {"", "${secret:TOKEN} ${tenantSecret:TOKEN}", "", "of TOKEN of TOKEN.default"},
	} {
		f := setup(t, noModel)
		sent := ""
		url, requests := f.serveRemote(func(_ int, started, finished string, w http.ResponseWriter, r *http.Request) {
			sent = r.Header.Get("X-Token")
			writeEvents(w, 1, started, finished)
		})
		f.acts.Remotes.Secret = func(name string) string { return "of " + name }
		f.revision, f.agent = tt.revision, &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url, Headers: map[string]string{"X-Token": tt.header}}}
		if _, result := f.run("hello"); result.Code != tt.code || sent != tt.sent || requests.Load() > 1 {
			t.Errorf("%s: code %q, header %q, %d requests, want code %q and header %q", name, result.Code, sent, requests.Load(), tt.code, tt.sent)
		}
	}
}

// TestBrokenHiddenStep: the run of a remote agent in a hidden step begins again, because the log does not
// have its messages. Its text is not mixed with that of the first attempt.
func TestBrokenHiddenStep(t *testing.T) {
	t.Parallel()
	f := setup(t, noModel)
	url, requests := f.serveRemote(func(n int, started, finished string, w http.ResponseWriter, r *http.Request) {
		text := remoteText("Hel", "lo")
		if r.Header.Get("Last-Event-ID") != "" {
			t.Errorf("request %d continues after event %q", n, r.Header.Get("Last-Event-ID"))
		}
		state := `{"type":"STATE_SNAPSHOT","snapshot":{"by":"remote"}}`
		if n == 1 {
			writeEvents(w, 1, started, text[0], state, state, state, text[1])
			return
		}
		writeEvents(w, 1, append(append([]string{started, state}, text...), finished)...)
	})
	f.others = map[string]*agents.Definition{"far": parseDefinition(t, "name: far\nremote: {url: \""+url+"\", retry: resume}\n")}
	f.agent = parseDefinition(t, "name: a\nsteps:\n  - {name: ask, agent: far, visible: false}\n  - {name: keep, set: {/said: \"${steps.ask}\"}}\n")
	_, result := f.run("hello")
	if result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("got %+v, want success", result)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	if got := f.threadState(); !strings.Contains(got, `"said":"Hello"`) {
		t.Errorf("state = %s, want the whole text", got)
	}
}

// TestResultWithoutCall: Mastra sends the result of a suspended tool without its call. APIs of models refuse
// such a conversation, so neither the model of a later step nor another remote agent gets the result. The
// agent itself gets it.
func TestResultWithoutCall(t *testing.T) {
	t.Parallel()
	var toModel []llm.Role
	f := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		for _, m := range req.Messages {
			toModel = append(toModel, m.Role)
		}
		return textAnswer("summed up")
	})
	sent := map[string][]agui.Role{}
	serve := func(name string) *agents.Definition {
		url, _ := f.serveRemote(func(_ int, started, finished string, w http.ResponseWriter, r *http.Request) {
			var in agui.RunAgentInput
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Errorf("the request of %s: %v", name, err)
			}
			sent[name] = nil
			for _, m := range in.Messages {
				sent[name] = append(sent[name], m.Role)
			}
			result := `{"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"suspended","content":"booked"}`
			writeEvents(w, 1, append(append([]string{started, result}, remoteText("Booked", ".")...), finished)...)
		})
		return parseDefinition(t, "name: "+name+"\nremote: {url: \""+url+"\"}\n")
	}
	f.others = map[string]*agents.Definition{"far": serve("far"), "near": serve("near")}
	f.agent = parseDefinition(t, "name: a\nmodel: test/m\nsteps:\n  - {name: room, agent: far}\n"+
		"  - {name: sum, agent: {instructions: Sum up.}}\n  - {name: second, agent: near}\n  - {name: third, agent: far}\n")
	if _, result := f.run("hello"); result.Outcome != runs.OutcomeSuccess {
		t.Fatalf("got %+v, want success", result)
	}
	if want := []llm.Role{llm.RoleSystem, llm.RoleUser, llm.RoleAssistant}; !slices.Equal(toModel, want) {
		t.Errorf("the model got %q, want %q", toModel, want)
	}
	if want := []agui.Role{agui.RoleUser, agui.RoleAssistant, agui.RoleAssistant}; !slices.Equal(sent["near"], want) {
		t.Errorf("another remote agent got %q, want %q", sent["near"], want)
	}
	if !slices.Contains(sent["far"], agui.RoleTool) {
		t.Errorf("the agent itself got %q, without its result", sent["far"])
	}
}

// TestUsageOfFailedRemoteRun: the usage that a remote agent reports with RUN_ERROR counts for the run and
// for the tenant's day, with the cost of each model, once.
func TestUsageOfFailedRemoteRun(t *testing.T) {
	t.Parallel()
	for _, retry := range []string{agents.RetryNever, agents.RetryRestart, agents.RetryResume} {
		f := setup(t, noModel)
		url, _ := f.serveRemote(func(_ int, started, _ string, w http.ResponseWriter, _ *http.Request) {
			writeEvents(w, 1, append(append([]string{started}, remoteText("Hel", "lo")...), `{"type":"RUN_ERROR","message":"no luck","code":"broken","usage":[`+
				`{"provider":"test","model":"m","inputTokens":10,"outputTokens":2,"totalTokens":12},{"provider":"there","model":"x","inputTokens":1,"outputTokens":1,"totalTokens":2}]}`)...)
		})
		f.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url, Retry: retry}}
		f.acts.Prices, f.acts.Budget = prices(t), openLedgerAtNoon(t, f.log, budget.Day{Amounts: budget.AmountsOf(1_000_000, 0)})
		events, result := f.run("hello")
		wantEqual(t, "code", result.Code, "remote_run_failed")
		failed := events[len(events)-1].(*agui.RunError)
		got, err := json.Marshal(failed.Usage)
		if err != nil {
			t.Fatal(err)
		}
		if len(failed.Usage) != 2 || *failed.Usage[0].TotalTokens != 12 || *failed.Usage[1].TotalTokens != 2 {
			t.Errorf("retry %s: usage = %s, want that of both models", retry, got)
		}
		wantEqual(t, "cost", string(failed.Metadata["perdure.cost"]), `{"amount":0.00002,"currency":"EUR"}`)
		wantDayUsage(t, f, 14)
	}
}

// TestEndlessEndOfRemoteRun: a remote agent may end its run with any number of interrupts, and report the
// usage of any number of models. What the workflow gets of it stays small, and the run ends.
func TestEndlessEndOfRemoteRun(t *testing.T) {
	t.Parallel()
	var interrupts, usage []string
	for i := range 300 {
		interrupts = append(interrupts, fmt.Sprintf(`{"id":"%d-%s","reason":"question","message":"?"}`, i, strings.Repeat("i", 80)))
		usage = append(usage, fmt.Sprintf(`{"model":"%d-%s","totalTokens":1}`, i, strings.Repeat("m", 80)))
	}
	for name, tt := range map[string]struct{ member, code string }{
		"interrupts": {`"outcome":{"type":"interrupt","interrupts":[` + strings.Join(interrupts, ",") + `]}`, runs.CodeLimitParallelTools},
		"usage":      {`"usage":[` + strings.Join(usage, ",") + `]`, ""},
	} {
		f := setup(t, noModel)
		f.hold = true
		url, requests := f.serveRemote(func(_ int, started, _ string, w http.ResponseWriter, _ *http.Request) {
			end := strings.Replace(strings.TrimSuffix(started, "}"), "RUN_STARTED", "RUN_FINISHED", 1)
			writeEvents(w, 1, started, end+","+tt.member+"}")
		})
		f.agent = &agents.Definition{Name: "a", Remote: &agents.Remote{URL: url}}
		if _, result := f.run("hello"); result.Code != tt.code {
			t.Errorf("%s: result = %+v, want the code %q", name, result, tt.code)
		}
		if n := requests.Load(); n != 1 {
			t.Errorf("%s: %d requests, want 1", name, n)
		}
	}
}
