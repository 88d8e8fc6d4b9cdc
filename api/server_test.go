package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamtest.Leaks()) }

// node is an API server on a real log. The test sets Temporal's responses.
type node struct {
	t         *testing.T
	nats      *natsserver.Server
	log       *stream.Log
	snapshots *snapshot.Store
	server    *api.Server
	http      *httptest.Server
	temporal  *temporalStub
}

// temporalStub is the part of Temporal that the API uses. A call of a function that the test does
// not set panics.
type temporalStub struct {
	client.Client
	start  func(in runs.Input) error
	submit func(execution string, in runs.SubmitRequest) (runs.SubmitResult, error)
	closed func(execution string) // returns when the execution has closed
	cancel func(run string) error
	stop   func(how string) error // how: cancel or terminate
	pause  func(update string) error
	steer  func(in runs.SteerRequest) (runs.SteerResult, error)
	decide func(thread string, in runs.DecideRequest) (runs.DecideResult, error)
	status func(execution string) (enums.WorkflowExecutionStatus, error)
	// waits tells that a task of a workflow waits for a worker since an hour; nil = none does.
	waits func(workflow string) bool
	clock clockStub
	fired func(workflow string) (runs.FiringResult, error) // the result of a firing
	lasts func(workflow string) bool                       // whether the firing is still active
	// history is the history of the latest execution, whose ID is "latest".
	history []*historypb.HistoryEvent
	mu      sync.Mutex
	starts  []runs.Input
}

func (s *temporalStub) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	in := args[0].(runs.Input)
	s.mu.Lock()
	s.starts = append(s.starts, in)
	s.mu.Unlock()
	return nil, s.start(in)
}

func (s *temporalStub) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	switch o.UpdateName {
	case runs.UpdateDecide:
		taken, err := s.decide(o.WorkflowID, o.Args[0].(runs.DecideRequest))
		return updateStub{decided: taken}, err
	case runs.UpdateSteer:
		taken, err := s.steer(o.Args[0].(runs.SteerRequest))
		return updateStub{steered: taken}, err
	case runs.UpdatePause, runs.UpdateResume:
		return updateStub{paused: runs.PauseResult{RunID: "r1"}}, s.pause(o.UpdateName)
	}
	taken, err := s.submit(o.RunID, o.Args[0].(runs.SubmitRequest))
	return updateStub{taken: taken}, err
}

func (s *temporalStub) GetWorkflow(_ context.Context, workflow, execution string) client.WorkflowRun {
	if strings.HasPrefix(workflow, "fire/") {
		return fireStub{ended: func() (runs.FiringResult, error) { return s.fired(workflow) }}
	}
	return runStub{execution: execution, closed: s.closed}
}

func (s *temporalStub) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	return s.cancel(arg.(runs.CancelRequest).RunID)
}

func (s *temporalStub) CancelWorkflow(context.Context, string, string) error { return s.stop("cancel") }

func (s *temporalStub) TerminateWorkflow(_ context.Context, workflow, _, _ string, _ ...any) error {
	if strings.HasSuffix(workflow, "/title") {
		return s.stop("terminate title")
	}
	return s.stop("terminate")
}

func (s *temporalStub) DescribeWorkflowExecution(_ context.Context, workflow, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if strings.HasPrefix(workflow, "fire/") && !s.lasts(workflow) {
		return nil, serviceerror.NewNotFound("closed")
	}
	status, err := s.status(execution)
	w := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: status, Execution: &commonpb.WorkflowExecution{RunId: cmp.Or(execution, "latest")},
	}}
	if s.waits != nil && s.waits(workflow) {
		w.ExecutionConfig = &workflowpb.WorkflowExecutionConfig{TaskQueue: &taskqueuepb.TaskQueue{Name: runs.TaskQueue}}
		w.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{
			State: enums.PENDING_WORKFLOW_TASK_STATE_SCHEDULED, ScheduledTime: timestamppb.New(time.Now().Add(-time.Hour)), Attempt: 1,
		}
	}
	return w, err
}

// DescribeTaskQueue implements client.Client: no worker polls.
func (s *temporalStub) DescribeTaskQueue(context.Context, string, enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error) {
	return &workflowservice.DescribeTaskQueueResponse{}, nil
}

func (s *temporalStub) GetWorkflowHistory(_ context.Context, _, execution string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	if execution != "latest" {
		panic("unexpected read of the history of " + execution + "")
	}
	return &historyStub{s.history}
}

type historyStub struct{ events []*historypb.HistoryEvent }

func (h *historyStub) HasNext() bool { return len(h.events) > 0 }

func (h *historyStub) Next() (*historypb.HistoryEvent, error) {
	e := h.events[0]
	h.events = h.events[1:]
	return e, nil
}

type updateStub struct {
	client.WorkflowUpdateHandle
	taken   runs.SubmitResult
	steered runs.SteerResult
	decided runs.DecideResult
	paused  runs.PauseResult
}

func (u updateStub) Get(_ context.Context, to any) error {
	switch to := to.(type) {
	case *runs.SubmitResult:
		*to = u.taken
	case *runs.SteerResult:
		*to = u.steered
	case *runs.DecideResult:
		*to = u.decided
	case *runs.PauseResult:
		*to = u.paused
	}
	return nil
}

type runStub struct {
	client.WorkflowRun
	execution string
	closed    func(execution string) // called by who waits for the close; nil = the execution stays open
}

func (r runStub) Get(ctx context.Context, result any) error {
	return r.GetWithOptions(ctx, result, client.WorkflowRunGetOptions{})
}

// GetWithOptions waits for the execution to close.
func (r runStub) GetWithOptions(ctx context.Context, _ any, _ client.WorkflowRunGetOptions) error {
	if r.closed == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	r.closed(r.execution)
	return nil
}

// alreadyStarted returns the error of a start while the thread's workflow is active.
func alreadyStarted(execution string) error {
	return serviceerror.NewWorkflowExecutionAlreadyStarted("running", "", execution)
}

// setup returns a server with the agent "a" on a log of its own.
func setup(t *testing.T, change ...func(*api.Config)) *node {
	t.Helper()
	n := &node{t: t, nats: streamtest.Server(t), temporal: &temporalStub{}}
	n.log = streamtest.OpenOn(t, n.nats)
	n.snapshots = snapshot.NewStore(n.log)
	// On a busy machine any run may look silent.
	n.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	agentsOf, err := catalog.Open(n.ctx(), n.log)
	if err != nil {
		t.Fatal(err)
	}
	d := &agents.Definition{Name: "a", Model: "test/m", Limits: agents.DefaultLimits()}
	if _, err := agentsOf.Publish(n.ctx(), d, false); err != nil {
		t.Fatal(err)
	}
	watching, err := agentsOf.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watching.Stop)
	store, err := schedules.Open(n.ctx(), n.log)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := store.Count(n.ctx(), n.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(counter.Stop)
	policies, err := policy.New(policy.DefaultRoles)
	if err != nil {
		t.Fatal(err)
	}
	cfg := api.Config{
		Policies:  policies,
		Schedules: store, ScheduleCounts: counter, Log: n.log, Snapshots: n.snapshots, Follower: streamtest.Follow(t, n.log), Catalog: agentsOf, Temporal: n.temporal,
		Auth:   &auth.Anonymous{Roles: []string{policy.DefaultRoles.PlatformAdmin}},
		Logger: slog.New(slog.DiscardHandler), Limits: api.Limits{MaxBody: 1 << 20, Silence: 10 * time.Millisecond},
	}
	for _, c := range change {
		c(&cfg)
	}
	n.server = api.New(cfg)
	n.http = httptest.NewServer(n.server.Handler())
	t.Cleanup(func() {
		n.server.Drain()
		n.http.Close()
		if err := n.server.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// ctx ends with the test. A test that hangs is reported by the timeout of go test, with all
// goroutines.
func (n *node) ctx() context.Context { return n.t.Context() }

// answer is a complete response.
type answer struct {
	status  int
	header  http.Header
	body    string
	problem problem.Problem
}

// do sends a request and reads the whole answer, which must match the API description.
func (n *node) do(method, path, body string, header ...string) answer {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.ctx(), method, n.http.URL+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := n.http.Client().Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(text)}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		if err := json.Unmarshal(text, &a.problem); err != nil {
			n.t.Fatalf("%s: %v", text, err)
		}
	}
	described().wantDescribed(n.t, req, body, a)
	wantNoMark(n.t, a.body)
	return a
}

// wantNoMark checks that a text for a client has no run ID with the mark of a segment.
func wantNoMark(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, `\u0000segment`) {
		t.Errorf("text for a client has the internal ID of a run = %q, want no %q", text, `\u0000segment`)
	}
	if strings.Contains(text, stream.SegmentMark) {
		t.Errorf("text for a client has the internal ID of a run = %q, want no %q", text, stream.SegmentMark)
	}
}

// post posts an input to the agent "a".
func (n *node) post(in agui.RunAgentInput) answer {
	n.t.Helper()
	return n.postTo("a", in)
}

// postTo posts an input to an agent.
func (n *node) postTo(agent string, in agui.RunAgentInput) answer {
	n.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.do(http.MethodPost, "/v1/agents/"+agent+"/runs", string(body))
}

// inputOf returns an input of the thread "t" with one user message.
func inputOf(run, message string) agui.RunAgentInput {
	return agui.RunAgentInput{
		ThreadID: "t", RunID: run, ProtocolVersion: "1.0",
		Messages: []agui.Message{{ID: "u-" + run, Role: agui.RoleUser, Content: agui.TextContent(message)}},
	}
}

// streamRun returns the run of a workflow's input in the log.
func streamRun(in runs.Input) stream.Run {
	return stream.Run{Thread: stream.Thread{Tenant: in.Run.Tenant, ID: in.Run.Thread}, ID: in.Run.ID}
}

// begin and end write the records that a workflow's activities would write.
func (n *node) begin(in runs.Input, execution string) stream.Place {
	n.t.Helper()
	p := stream.Place{Run: streamRun(in), Lane: stream.LaneMain, Step: "1/model", Execution: execution}
	opening := stream.Opening{RunID: in.Run.ID, Execution: execution, Input: in.Input, Digest: in.Digest, ProtocolVersion: "1.0"}
	var err error
	if p.After, err = n.log.OpenStep(n.ctx(), p, opening, &agui.RunStarted{ThreadID: in.Run.Thread, RunID: stream.ShownRunID(in.Run.ID)}); err != nil {
		n.t.Error(err)
	}
	return p
}

// end ends a run with RUN_FINISHED.
func (n *node) end(p stream.Place) {
	n.t.Helper()
	_, _, err := n.log.Seal(n.ctx(), p, &agui.RunFinished{ThreadID: p.Run.Thread.ID, RunID: p.Run.Shown()})
	if err != nil && n.t.Context().Err() == nil { // a test may end after the run's end, before the run is listed
		n.t.Error(err)
	}
}

// completeRuns makes started runs begin and end at once.
func (n *node) completeRuns() {
	n.temporal.start = func(in runs.Input) error { n.end(n.begin(in, "e-"+in.Run.ID)); return nil }
}

// cursors returns the cursors of a server-sent event response.
func cursors(body string) []string {
	var ids []string
	for _, line := range strings.Split(body, "\n") {
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func TestEqualInputIsSameRun(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	first := node.post(inputOf("r1", "hello"))
	first.mustStatus(t, "status", http.StatusOK)
	mustEqual(t, "number of events", len(cursors(first.body)), 2)
	if !strings.Contains(first.body, `"RUN_FINISHED"`) {
		t.Errorf("body = %q, want text with %q", first.body, `"RUN_FINISHED"`)
	}
	mustEqual(t, "header Content-Type", first.header.Get("Content-Type"), "text/event-stream")
	again := node.post(inputOf("r1", "hello"))
	wantEqual(t, "events of a repeated input", again.body, first.body)
	wantEqual(t, "number of starts", len(node.temporal.starts), 1)
	other := node.post(inputOf("r1", "something else"))
	other.wantStatus(t, "another input under the same id", http.StatusConflict)
	wantEqual(t, "problem code", other.problem.Code, "run_id_reused")
	if !strings.Contains(other.problem.Detail, `"r1"`) {
		t.Errorf("problem detail = %q, want text with %q", other.problem.Detail, `"r1"`)
	}
	for i, cursor := range cursors(first.body) {
		rest := node.do(http.MethodGet, "/v1/threads/t/runs/r1/events", "", "Last-Event-ID", cursor)
		want := len(cursors(first.body)) - 1 - i
		wantEqual(t, fmt.Sprintf("number of events after event %d", i), len(cursors(rest.body)), want)
		if want == 0 && rest.status != http.StatusNoContent {
			t.Errorf("after event %d: got %d with\n%s\nwant %d", i, rest.status, rest.body, http.StatusNoContent)
		}
	}
}

// TestNextRunWaitsForClosingWorkflow: when the previous run has ended and its workflow is
// closing, the next run waits for the close and starts.
func TestNextRunWaitsForClosingWorkflow(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	closed := false
	node.temporal.closed = func(execution string) { closed = execution == "e-r1" }
	start := node.temporal.start
	node.temporal.start = func(in runs.Input) error {
		if !closed {
			return alreadyStarted("e-r1")
		}
		return start(in)
	}
	a := node.post(inputOf("r2", "and now?"))
	a.wantStatus(t, "status", http.StatusOK)
	wantEqual(t, "workflow has closed", closed, true)
}

// TestRequestsBeforeFirstRecord: a run that has begun in Temporal is not in the log at once.
// Its workflow answers other inputs meanwhile, before the run ends.
func TestRequestsBeforeFirstRecord(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	var r2 runs.Input
	node.temporal.start = func(in runs.Input) error {
		if in.Run.ID == "r2" {
			r2 = in
		}
		return alreadyStarted("e-r2")
	}
	node.temporal.submit = func(execution string, in runs.SubmitRequest) (runs.SubmitResult, error) {
		if execution != "e-r2" {
			t.Errorf("updated execution: got %s, want e-r2", execution)
		}
		if in.RunID == "r2" {
			node.end(node.begin(r2, "e-r2"))
			return runs.SubmitResult{Attached: true}, nil
		}
		return runs.SubmitResult{}, temporal.NewApplicationError("busy", runs.ErrorBusy, runs.ActiveRun{RunID: "r2"})
	}
	busy := node.post(inputOf("r3", "me too"))
	busy.wantStatus(t, "another run", http.StatusConflict)
	wantEqual(t, "problem code", busy.problem.Code, "busy")
	wantEqual(t, "active run of the problem", busy.problem.ActiveRun, "r2")
	same := node.post(inputOf("r2", "and now?"))
	wantEqual(t, "status of the active run's input", same.status, http.StatusOK)
	if !strings.Contains(same.body, `"runId":"r2"`) {
		t.Errorf("body = %q, want text with %q", same.body, `"runId":"r2"`)
	}
}

// TestTerminatedRunEnds: a run whose workflow was terminated ends with an error for its viewers. A
// run with a running workflow may be silent for any time.
func TestTerminatedRunEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status   enums.WorkflowExecutionStatus
		err      error
		wantCode string
	}{
		{enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, nil, "workflow_terminated"},
		{enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, nil, "workflow_timed_out"},
		{0, serviceerror.NewNotFound("gone"), "workflow_lost"},
	} {
		t.Run(c.wantCode, func(t *testing.T) {
			t.Parallel()
			node := setup(t)
			node.temporal.start = func(in runs.Input) error { node.begin(in, "e1"); return nil }
			looks := 0
			node.temporal.status = func(execution string) (enums.WorkflowExecutionStatus, error) {
				looks++
				if execution != "e1" {
					t.Errorf("checked execution: got %q, want e1", execution)
				}
				if looks < 3 {
					return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
				}
				return c.status, c.err
			}
			a := node.post(inputOf("r1", "hello"))
			if !strings.Contains(a.body, `"RUN_ERROR"`) {
				t.Errorf("after %d checks: body = %q, want text with %q", looks, a.body, `"RUN_ERROR"`)
			}
			if !strings.Contains(a.body, `"code":"`+c.wantCode+`"`) {
				t.Errorf("after %d checks: body = %q, want text with %q", looks, a.body, `"code":"`+c.wantCode+`"`)
			}
			wantEqual(t, "number of checks of the run", looks, 3)
		})
	}
}

// TestSilentStreamHasHeartbeats: a silent stream has heartbeats, because proxies and clients close
// silent connections.
func TestSilentStreamHasHeartbeats(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Heartbeat = 20 * time.Millisecond })
	var place stream.Place
	node.temporal.start = func(in runs.Input) error { place = node.begin(in, "e1"); return nil }
	looks := 0
	node.temporal.status = func(string) (enums.WorkflowExecutionStatus, error) {
		if looks++; looks == 3 { // the pauses between checks double: some heartbeats are due by now
			node.end(place)
		}
		return enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
	}
	a := node.post(inputOf("r1", "hello"))
	beats := strings.Count(a.body, ": heartbeat\n\n")
	if beats == 0 {
		t.Errorf("number of heartbeats = %v, want at least 1", beats)
	}
	if !strings.Contains(a.body, `"RUN_FINISHED"`) {
		t.Errorf("body = %q, want text with %q", a.body, `"RUN_FINISHED"`)
	}
}

func TestUnavailableTemporal(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(runs.Input) error { return serviceerror.NewUnavailable("SECRET ADDRESS") }
	a := node.post(inputOf("r1", "hello"))
	a.wantStatus(t, "status", http.StatusServiceUnavailable)
	if a.header.Get("Retry-After") == "" {
		t.Error("header Retry-After is empty, want a value")
	}
	if strings.Contains(a.body, "SECRET") {
		t.Errorf("body = %q, want no %q", a.body, "SECRET")
	}
	node.completeRuns()
	again := node.post(inputOf("r1", "hello"))
	again.wantStatus(t, "the same again", http.StatusOK)
}

// TestShutdownShowsNoEmptyStream: an empty stream looks like a successful run to stock
// clients.
func TestShutdownShowsNoEmptyStream(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.temporal.start = func(in runs.Input) error { node.server.Drain(); return nil }
	a := node.post(inputOf("r1", "hello"))
	a.wantStatus(t, "status", http.StatusServiceUnavailable)
}

func TestCancel(t *testing.T) {
	t.Parallel()
	node := setup(t)
	const path = "/v1/threads/t/runs/r1/cancel"
	if a := node.do(http.MethodPost, path, ""); a.status != http.StatusNotFound || a.problem.Code != "unknown_thread" {
		t.Errorf("cancel in an unknown thread: got %d %s, want %d unknown_thread", a.status, a.body, http.StatusNotFound)
	}
	// The run is accepted and has not begun: the request is kept, and Temporal has nothing to
	// cancel.
	node.temporal.start = func(runs.Input) error { return serviceerror.NewUnavailable("") }
	node.post(inputOf("r1", "hello"))
	if a := node.do(http.MethodPost, path, `{"reason":"no"}`); a.status != http.StatusAccepted {
		t.Errorf("cancel before the start: status = %v, want %v; body: %s", a.status, http.StatusAccepted, a.body)
	}
	run := stream.Run{Thread: stream.Thread{Tenant: "default", ID: "t"}, ID: "r1"}
	wanted, err := node.log.CancelRequested(node.ctx(), run)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "log has the cancel request", wanted, true)
	p := node.begin(node.temporal.starts[0], "e1")
	var cancelled []string
	node.temporal.cancel = func(run string) error {
		cancelled = append(cancelled, run)
		return serviceerror.NewNotFound("it has just closed")
	}
	for range 2 {
		if a := node.do(http.MethodPost, path, ""); a.status != http.StatusAccepted {
			t.Errorf("cancel of an active run: status = %v, want %v; body: %s", a.status, http.StatusAccepted, a.body)
		}
	}
	node.end(p)
	if a := node.do(http.MethodPost, path, ""); a.status != http.StatusAccepted || strings.Join(cancelled, " ") != "r1 r1" {
		t.Errorf("cancel of an ended run: got %d and the cancels %v, want %d and two of r1", a.status, cancelled, http.StatusAccepted)
	}
	node.temporal.cancel = func(string) error { return errors.New("away") }
	for _, body := range []string{`{"reason":1}`, `[]`, `{"reason":"` + strings.Repeat("x", 1001) + `"}`} {
		if a := node.do(http.MethodPost, path, body); a.status != http.StatusBadRequest {
			t.Errorf("%.20s: status = %v, want %v; body: %s", body, a.status, http.StatusBadRequest, a.body)
		}
	}
}

func TestInvalidRequestsStartNothing(t *testing.T) {
	t.Parallel()
	node := setup(t)
	other := setup(t)
	const runs, events = "/v1/agents/a/runs", "/v1/threads/t/runs/r/events"
	valid := `{"threadId":"t","runId":"r","messages":[]}`
	foreign := stream.Cursor{Position: stream.Position{Seq: 1}, Generation: stream.Generation1, Epoch: other.log.Epoch()}.String()
	for _, c := range []struct {
		method, path, body    string
		wantStatus            int
		wantCode, wantPointer string
	}{
		{"POST", "/v1/agents/nobody/runs", valid, 404, "unknown_agent", ""},
		{"POST", runs, ``, 400, "invalid_input", ""},
		{"POST", runs, `{"runId":"r","messages":[]}`, 400, "invalid_input", "/threadId"},
		{"POST", runs, `{"threadId":"t","runId":"","messages":[]}`, 400, "invalid_input", "/runId"},
		{"POST", runs, `{"threadId":"t","runId":"` + strings.Repeat("x", 1001) + `","messages":[]}`, 400, "invalid_input", "/runId"},
		{"POST", runs, `{"threadId":"t","runId":"r","messages":[{"id":"1","role":7,"content":""}]}`, 400, "invalid_input", "/messages/0/role"},
		{"POST", runs, `{"threadId":"t","runId":"r","messages":[],"protocolVersion":"2.0"}`, 400, "unsupported_protocol_version", "/protocolVersion"},
		{"POST", runs, `{"threadId":"t","runId":"r","messages":[],"forwardedProps":{"perdure":{"history":"x"}}}`, 400, "invalid_input", "/forwardedProps/perdure/history"},
		{"POST", runs, `{"threadId":"t","runId":"r","messages":[],"state":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too_large", ""},
		{"GET", events, "", 404, "unknown_run", ""},
		{"GET", events + "?after=nonsense", "", 400, "invalid_cursor", ""},
		{"GET", events + "?after=" + foreign, "", 410, "log_replaced", ""},
		{"GET", "/v1/threads/t/runs/" + strings.Repeat("x", 1001) + "/events", "", 400, "invalid_input", "/runId"},
		{"GET", runs, "", 405, "method_not_allowed", ""},
		{"GET", "/v1/nothing", "", 404, "not_found", ""},
	} {
		a := node.do(c.method, c.path, c.body)
		if a.status != c.wantStatus || a.problem.Code != c.wantCode || a.problem.Pointer != c.wantPointer || a.problem.Status != c.wantStatus {
			t.Errorf("%s %.60s %.90s: %d %s, want %d %s %s", c.method, c.path, c.body, a.status, a.body, c.wantStatus, c.wantCode, c.wantPointer)
		}
	}
}

// TestEncodedIDs: IDs are any text. In a path an ID is one percent-encoded segment.
func TestEncodedIDs(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.completeRuns()
	for _, id := range []string{"a/b", "a b", "a+b", "a%2Fb", "ä✓", "..", ".", "a?b#c", "*", ">", "a.b", "~x", `"`, strings.Repeat("<", 1000), "\u202eabc", "e\u0301", "é", "😀", "A", "a"} {
		in := inputOf(id, "hello")
		in.ThreadID, in.Messages[0].ID = id, id
		posted := node.post(in)
		if posted.status != http.StatusOK || !strings.Contains(posted.body, `"RUN_FINISHED"`) {
			t.Errorf("%q: got %d %s, want %d with RUN_FINISHED", id, posted.status, posted.body, http.StatusOK)
			continue
		}
		segment := url.PathEscape(id)
		if id == "." || id == ".." {
			segment = strings.ReplaceAll(id, ".", "%2E")
		}
		read := node.do(http.MethodGet, "/v1/threads/"+segment+"/runs/"+segment+"/events", "")
		wantEqual(t, fmt.Sprintf("events of %q", id), read.body, posted.body)
	}
}
