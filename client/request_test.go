package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/client"
)

func TestRequestsCarryTheCaller(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Forwarded-User") != "ada" {
			t.Errorf("headers = %v, want the token and the user", r.Header)
		}
		fmt.Fprint(w, `{"items":[{"name":"demo","later":1}]}`)
	})
	c := s.client(t, client.Config{Token: "secret", Header: http.Header{"X-Forwarded-User": {"ada"}}})
	list, err := c.Agents(t.Context())
	if err != nil || len(list.Value.Items) != 1 || list.Value.Items[0].Name != "demo" || !strings.Contains(string(list.JSON), "later") {
		t.Errorf("list = %+v, %s, %v, want the agent demo, with later members", list.Value, list.JSON, err)
	}
}

// TestRequestsAreRepeated: a request whose answer is lost is sent again as a whole. A refused
// request is not.
func TestRequestsAreRepeated(t *testing.T) {
	t.Parallel()
	var bodies []string
	taken := func(answer string, cut bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			if cut {
				w.Header().Set("Content-Length", "1000")
			}
			fmt.Fprint(w, answer)
		}
	}
	s := serve(t, taken(`{"items":`, true), taken(`{"items":[{"id":"a","status":200},{"id":"b","status":409,"code":"decided","detail":"no"}]}`, false))
	got, err := s.client(t, client.Config{}).Decide(t.Context(),
		client.Decision{ThreadID: "t", ID: "a", Decision: client.Edit, Args: json.RawMessage(`{"n":1}`)}, client.Decision{ThreadID: "t", ID: "b", Decision: client.Reject})
	if err != nil || len(got) != 2 || got[0].Err() != nil || client.Code(got[1].Err()) != "decided" {
		t.Errorf("answers of the batch = %+v, %v, want success and decided", got, err)
	}
	want := `{"decisions":[{"threadId":"t","id":"a","decision":"edit","args":{"n":1}},{"threadId":"t","id":"b","decision":"reject"}]}`
	if len(bodies) != 2 || bodies[0] != want || bodies[1] != want {
		t.Errorf("requests: got %q, want %q twice", bodies, want)
	}
	refused := serve(t, refusal(http.StatusConflict, "not_active", ""))
	if err := refused.client(t, client.Config{}).Pause(t.Context(), "t"); client.Code(err) != "not_active" {
		t.Errorf("Pause = %v, want the code not_active", err)
	}
}

// TestRateLimitIsWaitedFor: a request that the server refuses for now is repeated after the pause that
// the server asks for. Without a pause it is an error at once.
func TestRateLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := serve(t, refusal(http.StatusTooManyRequests, "rate_limited", "1"), func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"items":[]}`) })
	var pauses []time.Duration
	c := s.client(t, client.Config{OnRetry: func(_ error, pause time.Duration) { pauses = append(pauses, pause) }})
	if _, err := c.Agents(t.Context()); err != nil || len(pauses) != 1 || pauses[0] < time.Second {
		t.Errorf("Agents = %v after the pauses %v, want no error after 1 s", err, pauses)
	}
	full := serve(t, refusal(http.StatusTooManyRequests, "queue_full", ""))
	if _, err := full.client(t, client.Config{}).Agents(t.Context()); client.Code(err) != "queue_full" {
		t.Errorf("Agents = %v, want the code queue_full", err)
	}
}

// TestTriggersAreSentOnce: a trigger is not repeated, because it might start a second run.
func TestTriggersAreSentOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, refusal(http.StatusServiceUnavailable, "unavailable", ""))
	var p *client.Problem
	if err := s.client(t, client.Config{}).TriggerSchedule(t.Context(), "nightly", "skip"); !errors.As(err, &p) || p.Status != http.StatusServiceUnavailable {
		t.Errorf("TriggerSchedule = %v, want the status 503", err)
	}
}

func TestAnswerThatIsNoProblem(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, strings.Repeat("ü", 1000))
	})
	_, err := s.client(t, client.Config{}).Agents(t.Context())
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != http.StatusForbidden || p.Code != "" || len(p.Detail) > 310 {
		t.Errorf("refusal = %v, want the status 403 with a short detail", err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "localhost:8080", "ftp://x", "http://", "http://x?y=1", "http://x/#z", "::"} {
		if _, err := client.New(client.Config{URL: url}); err == nil || !strings.Contains(err.Error(), "URL") {
			t.Errorf("URL %q: got %v, want an error about the URL", url, err)
		}
	}
}

// TestRunHasNullResult: the summary of a run tells a result that is null from none.
func TestRunHasNullResult(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{"runId":"r","result":null}`: "null", `{"runId":"r","result":{"n":1}}`: `{"n":1}`, `{"runId":"r"}`: ""} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
		got, err := s.client(t, client.Config{}).ThreadRun(t.Context(), "t", "r")
		if err != nil || string(got.Value.Result) != want || (got.Value.Result == nil) != (want == "") {
			t.Errorf("%s: result = %q, %v, want %q", body, got.Value.Result, err, want)
		}
	}
}
