package remote

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/e2e/kit"
)

// retries are the values of remote.retry.
var retries = []string{"never", "restart", "resume"}

// failure is a way in which the first request of a run fails.
type failure struct {
	fail func(*exchange)
	// hasBegun tells that the remote sends half of a run before it fails.
	hasBegun bool
	code     string   // of RUN_ERROR
	message  []string // parts of its message
	// again are the values of retry with which the run is attempted again.
	again []string
}

const (
	// token is the secret in the header of all agents.
	token = kit.WorkerSecret + "-of-the-remote"
	// refusal is the text with which a remote refuses a request. It quotes the secret.
	refusal = kit.Mark + " no credit left for " + token
	// silence is PERDURE_MODEL_SILENCE.
	silence = "2s"
)

var (
	always = retries
	broken = retries[1:]
)

// failures are the rows of the table in activities/remote_failure.go.
func failures(elsewhere string) map[string]failure {
	status := func(code int, header ...string) func(*exchange) {
		return func(e *exchange) {
			for i := 0; i < len(header); i += 2 {
				e.w.Header().Set(header[i], header[i+1])
			}
			http.Error(e.w, refusal, code)
		}
	}
	emits := func(event string) func(*exchange) { return func(e *exchange) { e.emit(event) } }
	return map[string]failure{
		"busy":        {fail: status(429, "Retry-After", "2"), again: always},
		"unavailable": {fail: status(503), again: always},
		"failed":      {fail: status(500), code: "remote_failed", message: []string{"HTTP 500", "no credit left"}, again: broken},
		"unanswered":  {fail: (*exchange).reset, code: "remote_connection_broken", again: broken},
		"reset":       {fail: (*exchange).reset, hasBegun: true, code: "remote_connection_broken", message: []string{"was lost during the run"}, again: broken},
		"silent":      {fail: func(e *exchange) { <-e.r.Context().Done() }, hasBegun: true, code: "remote_silent", message: []string{"has sent nothing for " + silence}, again: broken},
		"mute":        {fail: func(e *exchange) { <-e.r.Context().Done() }, code: "remote_silent", message: []string{"has not answered for " + silence}, again: broken},
		"truncated":   {fail: func(*exchange) {}, hasBegun: true, code: "remote_truncated", message: []string{"without RUN_FINISHED"}, again: broken},
		"illegal":     {fail: emits(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"` + kit.Mark + `","delta":"x"}`), hasBegun: true, code: "remote_protocol_error", message: []string{"TEXT_MESSAGE_CONTENT", "breaks the rule not_open"}},
		"malformed":   {fail: emits(`{"type":"TEXT_MESSAGE_CONTENT","` + kit.Mark), hasBegun: true, code: "remote_protocol_error", message: []string{"breaks the rule malformed"}},
		"error":       {fail: emits(`{"type":"RUN_ERROR","code":"NO_CREDIT","message":"` + refusal + `"}`), hasBegun: true, code: "remote_run_failed", message: []string{"has ended its run with the error NO_CREDIT", "no credit left"}},
		"long error":  {fail: emits(`{"type":"RUN_ERROR","message":"no credit left ` + strings.Repeat(kit.Mark, 1<<20/len(kit.Mark)) + `"}`), hasBegun: true, code: "remote_run_failed", message: []string{"has ended its run with an error: no credit left"}},
		"rejected":    {fail: status(402), code: "remote_rejected", message: []string{"HTTP 402", "no credit left"}},
		"redirected":  {fail: status(307, "Location", elsewhere), code: "remote_forbidden", message: []string{"redirect"}},
		"html":        {fail: status(200), code: "remote_not_events", message: []string{"text/plain"}},
		"too large":   {fail: emits(`{"type":"CUSTOM","name":"x","value":"` + strings.Repeat(kit.Mark, 4<<20/len(kit.Mark)) + `"}`), hasBegun: true, code: "remote_too_large", message: []string{"4194304 bytes"}},
	}
}

// TestFailures: a failed run of a remote agent is attempted again, continued or ended, as its kind and
// the key retry say. Readers see nothing of a failed attempt in the end.
func TestFailures(t *testing.T) {
	s := startFlakyServer(t)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host received a request with the header %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(other.Close)
	all := failures(other.URL)
	var definitions []string
	for name := range all {
		for _, retry := range retries {
			definitions = append(definitions, fmt.Sprintf("name: %s\nremote: {url: \"%s/%s\", retry: %s, headers: {Authorization: \"Bearer ${secret:REMOTE}\"}}\n",
				agentName(name, retry), s.URL, agentName(name, retry), retry))
		}
	}
	p := startWith(t, strings.Join(definitions, "---\n"), "PERDURE_SECRET_REMOTE="+token, "PERDURE_MODEL_SILENCE="+silence)
	t.Run("all", func(t *testing.T) {
		for name, f := range all {
			for _, retry := range retries {
				t.Run(name+"/"+retry, func(t *testing.T) {
					t.Parallel()
					f.check(t, p, s, agentName(name, retry), retry)
				})
			}
		}
	})
	for _, secret := range []string{token, "no credit left"} {
		if strings.Contains(p.Output.String(), secret) {
			t.Errorf("the worker's log has %q", secret)
		}
	}
}

// agentName returns the name of the agent of a cell, which is also its path.
func agentName(name, retry string) string { return strings.ReplaceAll(name, " ", "-") + "-" + retry }

// check runs the agent of a cell, and checks its requests, its end and what readers see.
func (f failure) check(t *testing.T, p *kit.Perdure, s *flakyServer, agent, retry string) {
	begun, path := make(chan struct{}), "/"+agent
	s.handle(path, func(e *exchange) {
		if e.n > 1 {
			e.finish()
			return
		}
		if f.hasBegun {
			e.begin()
			<-begun // the live reader has it
		}
		f.fail(e)
	})
	in := kit.NewInput(kit.Marked("Are you there?"))
	live := p.FollowAgent(t, "/v1/agents/"+agent+"/runs", in)
	if f.hasBegun {
		live.UntilContent(t, 2)
	}
	close(begun)
	live.Finish(t)
	isAgain := slices.Contains(f.again, retry)
	requests := s.received(path)
	if want := map[bool]int{false: 1, true: 2}[isAgain]; len(requests) != want {
		t.Errorf("%d requests, want %d", len(requests), want)
	}
	last := live.Events[len(live.Events)-1]
	messages, state := in.Messages, map[string]any{}
	switch {
	case !isAgain:
		f.wantError(t, last)
	case retry == "resume" && f.hasBegun:
		messages, state = wantRun(in, 1)
		if got := requests[1].Header.Get("Last-Event-ID"); got != fmt.Sprint(middle) {
			t.Errorf("Last-Event-ID = %q, want %d", got, middle)
		}
	default:
		messages, state = wantRun(in, 2)
	}
	if isAgain && last.Type != "RUN_FINISHED" {
		t.Errorf("end of the run = %s, want RUN_FINISHED", last.Data)
	}
	wantThread(t, p, live, messages, state)
}

// wantError checks the last event of a run that has failed.
func (f failure) wantError(t *testing.T, last kit.Event) {
	t.Helper()
	message := last.Member("message")
	if last.Type != "RUN_ERROR" || last.Member("code") != f.code {
		t.Errorf("end of the run = %.300s, want RUN_ERROR %s", last.Data, f.code)
	}
	for _, part := range f.message {
		if !strings.Contains(message, part) {
			t.Errorf("message = %q, want it to have %q", message, part)
		}
	}
	if strings.Contains(string(last.Data), token) || len(last.Data) > 4<<10 {
		t.Errorf("end of the run = %.5000s, want a short text with the secret hidden", last.Data)
	}
}

// wantThread checks the messages and the state that the live reader of a run has at its end, that a
// later reader has, and that the API returns.
func wantThread(t *testing.T, p *kit.Perdure, live *kit.Follower, messages []kit.Message, state map[string]any) {
	t.Helper()
	kit.WantMessages(t, messages, kit.WithoutEmptyReasoning(kit.ShownMessages(t, live.In.Messages, live.Events, kit.RetractWarning)))
	late := p.NewFollower(t, live.In)
	late.Agent = live.Agent
	late.Finish(t)
	kit.WantMessages(t, messages, kit.ShownMessages(t, live.In.Messages, late.Events))
	kit.WantMessages(t, messages, p.MessagesOf(t, live.In.ThreadID))
	for who, got := range map[string]map[string]any{"the live reader": shownState(t, live.Events), "a late reader": shownState(t, late.Events), "the API": p.StateOf(t, live.In)} {
		if diff := cmp.Diff(state, got); diff != "" && len(state)+len(got) > 0 {
			t.Errorf("state of %s (-want +got):\n%s", who, diff)
		}
	}
	for _, e := range late.Events {
		for attempt := 1; attempt < 9; attempt++ {
			if said := saidIn(attempt); strings.Contains(string(e.Data), said) && state["by"] != said {
				t.Errorf("event of a late reader = %s, want nothing of a failed attempt", e.Data)
			}
		}
	}
}

// shownState returns the state at the end of a stream.
func shownState(t *testing.T, events []kit.Event) (state map[string]any) {
	t.Helper()
	reducer := agui.NewReducer(nil, nil)
	for _, e := range events {
		decoded, err := agui.Decode(e.Data)
		if err == nil {
			err = reducer.Apply(decoded)
		}
		if err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
	}
	return decode[map[string]any](t, reducer.State())
}

// TestRetryAfter: the worker waits as long as the remote asks, and gives up after 8 failures.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := startFlakyServer(t)
	times := make(chan time.Time, 9)
	s.handle("/", func(e *exchange) {
		times <- time.Now()
		e.w.Header().Set("Retry-After", "1")
		http.Error(e.w, refusal, http.StatusServiceUnavailable)
	})
	p := startWith(t, "name: afar\nremote: {url: "+s.URL+"/, headers: {Authorization: \"Bearer ${secret:REMOTE}\"}}\n", "PERDURE_SECRET_REMOTE="+token)
	f := p.FollowAgent(t, "/v1/agents/afar/runs", kit.NewInput(kit.Marked("Are you there?")))
	f.Finish(t)
	failure{code: "remote_unavailable", message: []string{"HTTP 503", "no credit left", "attempt 8"}}.wantError(t, f.Events[len(f.Events)-1])
	if len(times) != 8 {
		t.Fatalf("%d requests, want 8", len(times))
	}
	before := <-times
	for range 7 {
		next := <-times
		if pause := next.Sub(before); pause < time.Second || pause > 10*time.Second {
			t.Errorf("pause of %s, want the second of Retry-After", pause)
		}
		before = next
	}
}

// TestUnreachable: a run waits for an agent whose server does not run, whatever retry says.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	address := kit.FreeAddress(t)
	var definitions []string
	for _, retry := range retries {
		definitions = append(definitions, fmt.Sprintf("name: %s\nremote: {url: \"http://%s/%s\", retry: %s}\n", retry, address, retry, retry))
	}
	p := startWith(t, strings.Join(definitions, "---\n"))
	s := newFlakyServer()
	var all []*kit.Follower
	for _, retry := range retries {
		s.handle("/"+retry, (*exchange).finish)
		all = append(all, p.FollowAgent(t, "/v1/agents/"+retry+"/runs", kit.NewInput(kit.Marked("Are you there?"))))
		p.Output.Await(t, "the run of a remote agent failed and will be attempted again")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	for i, retry := range retries {
		all[i].Finish(t)
		messages, state := wantRun(all[i].In, 1)
		wantThread(t, p, all[i], messages, state)
		if n := len(s.received("/" + retry)); n != 1 {
			t.Errorf("%s: %d requests, want 1", retry, n)
		}
	}
	if log := p.Output.String(); !strings.Contains(log, "code=remote_unreachable") {
		t.Errorf("log = %s, want the code remote_unreachable", log)
	}
}
