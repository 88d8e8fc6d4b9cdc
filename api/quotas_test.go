package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// TestAgentsHaveQuotas: a new agent beyond the quota of agents is refused, and a revision beyond
// that of the definitions' bytes. To publish the current revision again is not refused.
func TestAgentsHaveQuotas(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {agents: 1, definitionBytes: 2000}"))
	node.do(http.MethodPut, "/v1/agents/b", "name: b\nmodel: test/m\n").wantExceeded(t, "second agent", "agents", 1)
	put := func(n int) answer {
		return node.do(http.MethodPut, "/v1/agents/a", fmt.Sprintf("name: a\nmodel: test/m\ndescription: %s %d\n", strings.Repeat("x", 600), n))
	}
	n := 0
	for put(n).status == http.StatusOK {
		n++
	}
	refused := put(n)
	if p := refused.problem; n < 1 || n > 3 || refused.status != http.StatusTooManyRequests || p.Quota != "definitionBytes" || p.Limit != 2000 || p.Used < 600 {
		t.Errorf("revision %d: got %d %s, want that 2,000 bytes have at most 3", n, refused.status, refused.body)
	}
	put(n-1).wantStatus(t, "the current revision again", http.StatusOK)
	if again := put(n); again.problem.Used != refused.problem.Used {
		t.Errorf("bytes after refused requests: got %d, want %d", again.problem.Used, refused.problem.Used)
	}
}

// TestSchedulesHaveQuotas: a schedule beyond the quota is refused, and so are schedules that would
// fire more often than the quota of firings, however they are written. A change that fires less
// often is not refused.
func TestSchedulesHaveQuotas(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {schedules: 3, firingsPerHour: 100}"))
	every := func(id, every string) string {
		return scheduleWith(t, map[string]any{"id": id, "cron": []string{}, "intervals": []any{map[string]string{"every": every}}})
	}
	post := func(body string) answer { return node.do(http.MethodPost, "/v1/schedules", body) }
	tooOften := func(what string, a answer, used int64) {
		t.Helper()
		got := fmt.Sprintln(a.status, a.problem.Code, a.problem.Quota, a.problem.Limit, a.problem.Used, a.header.Get("RateLimit-Policy"), a.header.Get("RateLimit"))
		wantEqual(t, what, got, fmt.Sprintf("429 quota_exceeded firingsPerHour 100 %d \"firingsPerHour\";q=100 \"firingsPerHour\";r=%d\n", used, 100-used))
	}
	tooOften("every second", post(every("s", "1s")), 0)
	tooOften("a calendar of seconds", post(scheduleWith(t, map[string]any{"cron": []string{}, "calendars": []any{map[string]string{"second": "*/10", "minute": "*/3"}}})), 0)
	post(every("minute", "1m")).wantStatus(t, "each minute", http.StatusCreated)
	post(every("minute", "1m")).wantStatus(t, "each minute again", http.StatusOK)
	tooOften("a second one each minute", post(every("s", "1m")), 60)
	post(every("rare", "24h")).wantStatus(t, "once a day", http.StatusCreated)
	put := func(id, interval string) answer {
		return node.do(http.MethodPut, "/v1/schedules/"+id, every(id, interval))
	}
	tooOften("a change", put("rare", "1m"), 61)
	put("minute", "2m").wantStatus(t, "a change to less often", http.StatusOK)
	put("rare", "1m").wantStatus(t, "the change after that", http.StatusOK)
	post(every("third", "24h")).wantStatus(t, "a third one", http.StatusCreated)
	post(every("fourth", "24h")).wantExceeded(t, "a fourth one", "schedules", 3)
	if a := node.do(http.MethodGet, "/v1/quotas", ""); !strings.Contains(a.body, `{"quota":"schedules","used":3,"limit":3},{"quota":"firingsPerHour","used":91,"limit":100}`) {
		t.Errorf("quotas = %s, want three schedules and 91 firings", a.body)
	}
	trigger := func() answer { return node.do(http.MethodPost, "/v1/schedules/third/trigger", "{}") }
	trigger().wantStatus(t, "a trigger", http.StatusNoContent)
	a := trigger()
	wantEqual(t, "a second trigger", fmt.Sprintln(a.status, a.problem.Code, a.header.Get("RateLimit-Policy")), "429 rate_limited \"firingsPerHour\";q=1;w=60\n")
}

// TestConcurrentSchedulesRespectQuota: requests that arrive together do not exceed the quota of
// firings.
func TestConcurrentSchedulesRespectQuota(t *testing.T) {
	t.Parallel()
	node := setup(t, quotasOf(t, "default: {firingsPerHour: 120}"))
	var group sync.WaitGroup
	var created atomic.Int64
	for i := range 10 {
		body := scheduleWith(t, map[string]any{"id": fmt.Sprint("s", i), "cron": []string{"* * * * *"}})
		group.Go(func() {
			if node.do(http.MethodPost, "/v1/schedules", body).status == http.StatusCreated {
				created.Add(1)
			}
		})
	}
	group.Wait()
	wantEqual(t, "schedules that were created", created.Load(), 2)
}

// TestSubjectHasPartOfRuns: a subject has at most half of the active runs of its tenant, in the
// threads that it owns. Another subject of the tenant begins a run.
func TestSubjectHasPartOfRuns(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, withThreadList(t), quotasOf(t, "default: {runs: 2}"))
	node.temporal.start = func(in runs.Input) error { node.list(in); return nil }
	request := func(thread, subject string) (body string, header []string) {
		in := inputOf("r1", "hello")
		in.ThreadID = thread
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw), []string{"X-Tenant", "acme", "X-Subject", subject}
	}
	body, header := request("first", "ann")
	active, err := http.NewRequestWithContext(t.Context(), http.MethodPost, node.http.URL+"/v1/agents/a/runs", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		active.Header.Set(header[i], header[i+1])
	}
	stream, err := node.http.Client().Do(active)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	node.awaitActive("acme")
	body, header = request("second", "ann")
	refused := node.do(http.MethodPost, "/v1/agents/a/runs", body, header...)
	refused.wantExceeded(t, "second run of ann", "runs", 1)
	if !strings.Contains(refused.problem.Detail, "one subject may have") {
		t.Errorf("detail: got %q, want that it names the part of a subject", refused.problem.Detail)
	}
	node.answerRuns()
	body, header = request("third", "bob")
	node.do(http.MethodPost, "/v1/agents/a/runs", body, header...).wantStatus(t, "run of bob", http.StatusOK)
}

// TestSubjectHasPartOfSchedules: a subject has at most half of the schedules and of the firings of
// its tenant, so that another one can write a schedule.
func TestSubjectHasPartOfSchedules(t *testing.T) {
	t.Parallel()
	node := setup(t, byTenantHeader, quotasOf(t, "tenants: {few: {schedules: 2}, rare: {firingsPerHour: 120}}"))
	post := func(tenant, subject, id string) answer {
		return node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": id, "cron": []string{"* * * * *"}}), "X-Tenant", tenant, "X-Subject", subject)
	}
	for tenant, name := range map[string]string{"few": "schedules", "rare": "firingsPerHour"} {
		post(tenant, "ann", "s1").wantStatus(t, tenant+": first of ann", http.StatusCreated)
		refused := post(tenant, "ann", "s2")
		if refused.status != http.StatusTooManyRequests || refused.problem.Quota != name || !strings.Contains(refused.problem.Detail, "one subject may have") {
			t.Errorf("%s: second of ann: got %d %s, want a refusal for the part of a subject", tenant, refused.status, refused.body)
		}
		post(tenant, "bob", "s2").wantStatus(t, tenant+": first of bob", http.StatusCreated)
	}
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
		for _, want := range []string{`"tenant":"acme"`, `{"quota":"runs","used":1,"limit":5}`, `{"quota":"streams","used":0,"limit":3}`, `{"quota":"threads","used":1}`, `{"rate":"requestsPerSecond","perSecond":70}`, `"subjectPercent":50`} {
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
