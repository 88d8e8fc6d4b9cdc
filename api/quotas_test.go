package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// wantExceeded checks that a request was refused because of a quota.
func (a answer) wantExceeded(t *testing.T, what, name string, limit int) {
	t.Helper()
	got := fmt.Sprintln(a.status, a.problem.Code, a.problem.Quota, a.problem.Limit, a.problem.Used)
	wantEqual(t, what, got, fmt.Sprintln(http.StatusTooManyRequests, "quota_exceeded", name, limit, limit))
}

// list begins a run as its workflow would, so that the list of threads has it.
func (n *node) list(in runs.Input) stream.Place {
	n.t.Helper()
	p := stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: "e"}
	var err error
	if p.After, err = n.snapshots.OpenRun(n.ctx(), p, stream.Opening{Agent: "a", Input: in.Input, Digest: in.Digest}); err != nil {
		n.t.Error(err)
	}
	return p
}

// awaitActive waits until a tenant has an active run.
func (n *node) awaitActive(tenant string) {
	waitFor(n.t, func() bool {
		a := n.do(http.MethodGet, "/v1/quotas", "", "X-Tenant", tenant)
		return strings.Contains(a.body, `{"quota":"runs","used":1`)
	})
}

// TestRunsBeyondQuotaAreRefused: a new run beyond the quota of active runs is refused before anything
// is written. What continues an accepted run is not: a repeated input, steering, and an answer.
func TestRunsBeyondQuotaAreRefused(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), quotasOf(t, "default: {runs: 1}"))
	var active stream.Place
	node.temporal.start = func(in runs.Input) error { active = node.list(in); return nil }
	first := inputOf("r1", "hello")
	reader := node.watchRun(first)
	defer reader.close()
	node.awaitList("", "t running")

	other := inputOf("r2", "hello")
	other.ThreadID = "other"
	refused := node.post(other)
	refused.wantExceeded(t, "a second run", "runs", 1)
	if refused.header.Get("Retry-After") == "" {
		t.Error("a second run: no Retry-After, want one")
	}
	if last, err := node.log.LastOf(t.Context(), stream.Thread{Tenant: auth.TenantDefault, ID: "other"}); last != 0 || err != nil {
		t.Errorf("records of the refused run: got %d, %v, want none", last, err)
	}
	again := node.watchRun(first)
	again.until("RUN_STARTED")
	again.close()
	node.temporal.steer = func(runs.SteerRequest) (runs.SteerResult, error) { return runs.SteerResult{}, nil }
	node.do(http.MethodPost, "/v1/threads/t/messages", `{"message":{"id":"s1","role":"user","content":"faster"}}`).wantStatus(t, "steering", http.StatusAccepted)

	node.interrupts(active)
	node.awaitList("", "t waiting")
	node.completeRuns()
	node.post(other).wantStatus(t, "a run after the end of the first", http.StatusOK)
}

// TestThreadsAndForksHaveAQuota: a new thread, and a fork, beyond the quota is refused. A run of a
// thread that exists is not.
func TestThreadsAndForksHaveAQuota(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), quotasOf(t, "default: {threads: 1}"))
	node.answerRuns()
	node.postMessage("t", "r1").wantStatus(t, "first thread", http.StatusOK)
	node.awaitList("", "t idle")
	node.postMessage("t2", "r1").wantExceeded(t, "second thread", "threads", 1)
	node.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", `{"threadId":"t2"}`).wantExceeded(t, "fork", "threads", 1)
	node.postMessage("t", "r2").wantStatus(t, "second run", http.StatusOK)
}

// TestNewRunOfKnownThreadHasAQuota: a further run of a thread that exists counts as a new run.
func TestNewRunOfKnownThreadHasAQuota(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), quotasOf(t, "default: {runs: 1}"))
	node.answerRuns()
	node.postMessage("t", "r1").wantStatus(t, "first run", http.StatusOK)
	node.awaitList("", "t idle")
	node.list(runs.Input{Run: runs.Ref{Tenant: "default", Thread: "busy", ID: "r"}})
	node.awaitActive("default")
	node.postMessage("t", "r2").wantExceeded(t, "second run", "runs", 1)
}

// TestWaitingThreadContinuesAtQuota: at the quota of waiting threads new runs are refused, and the
// input that decides the interrupts of a thread is not.
func TestWaitingThreadContinuesAtQuota(t *testing.T) {
	t.Parallel()
	node := setup(t, withThreadList(t), quotasOf(t, "default: {waitingThreads: 1, runs: 1}"))
	node.temporal.start = func(in runs.Input) error { node.interrupts(node.begin(in, "e")); return nil }
	node.postMessage("asks", "r1").wantStatus(t, "a run with an interrupt", http.StatusOK)
	node.awaitList("", "asks waiting")
	node.postMessage("t2", "r1").wantExceeded(t, "another run", "waitingThreads", 1)
	node.temporal.start = func(in runs.Input) error { return alreadyStarted("e") }
	node.temporal.submit = func(string, runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{Open: true}, nil }
	decides := inputOf("r2", "")
	decides.ThreadID, decides.Messages = "asks", []agui.Message{}
	decides.Resume = []agui.ResumeEntry{{InterruptID: question, Status: "resolved", Payload: []byte(`{"approved":true}`)}}
	if a := node.post(decides); a.status == http.StatusTooManyRequests {
		t.Errorf("decision: got %d %s, want that it is not refused for a quota", a.status, a.body)
	}
}

// TestSchedulesAndAgentsHaveQuotas: a schedule beyond the quota is refused, and a repeated one is not;
// the same holds for agents of the platform.
func TestSchedulesAndAgentsHaveQuotas(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {agents: 1}"))
	node.do(http.MethodPut, "/v1/agents/b", "name: b\nmodel: test/m\n").wantExceeded(t, "second agent", "agents", 1)
	node.do(http.MethodPut, "/v1/agents/a", "name: a\nmodel: test/m\ndescription: changed\n").wantStatus(t, "change of the first", http.StatusOK)
}

// TestQuotasAreShown: a caller sees the quotas of its tenant, and an administrator of the platform
// those of any tenant.
func TestQuotasAreShown(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, withThreadList(t), quotasOf(t, "tenants: {acme: {runs: 5, streams: 3, threads: unlimited, requestsPerSecond: 70}}"))
	node.list(runs.Input{Run: runs.Ref{Tenant: "acme", Thread: "t", ID: "r"}})
	node.awaitActive("acme")
	get := func(path string, header ...string) answer { return node.do(http.MethodGet, path, "", header...) }
	member := []string{"X-Tenant", "acme", "X-Subject", "ann"}
	admin := []string{"X-Tenant", "ops", "X-Subject", "root", "X-Role", policy.DefaultRoles.PlatformAdmin}
	for who, a := range map[string]answer{"a member": get("/v1/quotas", member...), "an administrator": get("/v1/quotas?tenant=acme", admin...)} {
		a.wantStatus(t, who, http.StatusOK)
		for _, want := range []string{`"tenant":"acme"`, `{"quota":"runs","used":1,"limit":5}`, `{"quota":"streams","used":0,"limit":3}`, `{"quota":"threads","used":1}`, `{"rate":"requestsPerSecond","perSecond":70}`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s: got %s, want %s", who, a.body, want)
			}
		}
	}
	a := get("/v1/quotas?tenant=globex", member...)
	a.wantStatus(t, "another tenant", http.StatusForbidden)
	get("/v1/quotas?tenant=", admin...).wantStatus(t, "no tenant", http.StatusBadRequest)
	wantEqual(t, "code", a.problem.Code, "forbidden")
}
