package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/perdure/perdure/activities"
	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/audit/store"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
)

// scheduleFixture is a schedule of ann's, on a real log. The test sets Temporal's responses.
type scheduleFixture struct {
	t    *testing.T
	log  *stream.Log
	acts *activities.Activities
	env  *testsuite.TestActivityEnvironment
	in   runs.FiringInput
	run  stream.Run
	kept *schedules.Stored
	// triggered is the definition of an agent with triggers; nil = there is none.
	triggered *agents.Definition

	client.Client
	started  []runs.Input
	occupied bool                                                   // the thread has a workflow
	submit   func(in runs.SubmitRequest) (runs.SubmitResult, error) // of that workflow
	signals  []runs.CancelRequest                                   // cancels that were signaled
}

// setupSchedules returns a fixture with the stored schedule "daily".
func setupSchedules(t *testing.T, change ...func(*schedules.Stored)) *scheduleFixture {
	t.Helper()
	fixture := &scheduleFixture{t: t, log: streamtest.Open(t), in: runs.FiringInput{Tenant: "shop", Schedule: "daily", At: time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC), FiringID: "fire/shop/daily-1", ParkAfter: time.Second}}
	store, err := schedules.Open(t.Context(), fixture.log)
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := schedules.Parse([]byte(`{"id":"daily","agent":"a","cron":["@daily"],"input":{"messages":[{"role":"user","content":"hello"}],"forwardedProps":{"perdure":{"hold":true}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	fixture.kept = &schedules.Stored{Schedule: *schedule, Requester: &auth.Principal{Tenant: "shop", Subject: "ann"}}
	for _, c := range change {
		c(fixture.kept)
	}
	if err := store.Create(t.Context(), "shop", fixture.kept); err != nil {
		t.Fatal(err)
	}
	fixture.in.Revision, fixture.run = fixture.kept.Revision, fixture.kept.RunAt("shop", fixture.in.At)
	fixture.env = newActivityEnv()
	policies, err := policy.New(policy.DefaultRoles)
	if err != nil {
		t.Fatal(err)
	}
	fixture.acts = &activities.Activities{
		Log: fixture.log, Snapshots: snapshot.NewStore(fixture.log), Agents: fixture,
		Firings: activities.Firings{Policies: policies, Schedules: store, Dispatch: &dispatch.Dispatcher{Log: fixture.log, Temporal: fixture}},
	}
	fixture.acts.Register(fixture.env)
	return fixture
}

func (f *scheduleFixture) Revision(context.Context, string, string, string) (*agents.Definition, error) {
	if f.triggered != nil {
		return f.triggered, nil
	}
	return nil, errors.New("a firing needs no revision")
}

func (f *scheduleFixture) Authors(context.Context, string, stream.AgentRevision) ([]*auth.Principal, error) {
	return nil, errors.ErrUnsupported
}

func (f *scheduleFixture) Latest(_ context.Context, _, agent string) (catalog.Published, error) {
	if agent != "a" && agent != "b" {
		return catalog.Published{}, catalog.ErrUnknownAgent
	}
	return catalog.Published{Definition: &agents.Definition{Name: agent, Limits: agents.DefaultLimits()}, Revision: "v"}, nil
}

func (f *scheduleFixture) ExecuteWorkflow(_ context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	if f.occupied {
		return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("running", "", "e1")
	}
	f.occupied, f.started = true, append(f.started, args[0].(runs.Input))
	return nil, nil
}

type submitHandle struct {
	client.WorkflowUpdateHandle
	taken runs.SubmitResult
}

func (s submitHandle) Get(_ context.Context, to any) error {
	*to.(*runs.SubmitResult) = s.taken
	return nil
}

func (f *scheduleFixture) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	taken, err := f.submit(o.Args[0].(runs.SubmitRequest))
	return submitHandle{taken: taken}, err
}

func (f *scheduleFixture) SignalWorkflow(_ context.Context, _, _, _ string, arg any) error {
	f.signals = append(f.signals, arg.(runs.CancelRequest))
	return nil
}

func (f *scheduleFixture) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	status := enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	if f.occupied {
		status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status}}, nil
}

// TestFiringNeedsAccessToThread: a schedule of ann's starts a run only in a thread of her own, or in
// a shared one whose owner was the same when she wrote the schedule. So nobody captures the input of
// a firing by beginning its thread and sharing it with her.
func TestFiringNeedsAccessToThread(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		thread, owner string
		share         bool
		ownerAtWrite  string // "" = the thread did not exist
		want          string
		deleted       bool
	}{
		"own":                           {"shared", "ann", false, "", "", false},
		"of bob":                        {"shared", "bob", false, "bob", "forbidden", false},
		"shared by bob before":          {"shared", "bob", true, "bob", "", false},
		"begun and shared by bob later": {"shared", "bob", true, "", "forbidden", false},
		"of carol, begun again and shared by bob": {"shared", "bob", true, "carol", "forbidden", false},
		"new thread, begun and shared by bob":     {"", "bob", true, "", "forbidden", false},
		"new thread, begun by ann":                {"", "ann", false, "", "", false},
		"of ann, deleted":                         {"shared", "ann", false, "ann", "", true},
		"shared by bob before, deleted":           {"shared", "bob", true, "bob", "forbidden", true},
	} {
		f := setupSchedules(t, func(s *schedules.Stored) {
			s.ThreadID = tt.thread
			if tt.ownerAtWrite != "" {
				s.ThreadOwner = &tt.ownerAtWrite
			}
		})
		first := stream.Run{Thread: f.run.Thread, ID: "r0"}
		in := &stream.Input{Requester: &auth.Principal{Tenant: "shop", Subject: tt.owner}}
		if _, err := f.log.ProposeFirstInput(t.Context(), first, [32]byte{1}, in); err != nil {
			t.Fatal(err)
		}
		if tt.share {
			f.endRun(f.openRun(first, stream.Opening{RunID: "r0"}), nil)
			if _, err := f.log.Share(t.Context(), f.run.Thread, []stream.Share{{Subject: "ann", Access: stream.AccessRun}}); err != nil {
				t.Fatal(err)
			}
		}
		if tt.deleted {
			if err := f.log.Purge(t.Context(), f.run.Thread); err != nil {
				t.Fatal(err)
			}
		}
		fired, err := f.startRun()
		if err != nil || fired.Refused != tt.want || len(f.started) != map[string]int{"": 1, "forbidden": 0}[tt.want] {
			t.Errorf("%s: firing = %+v, %v with %d runs, want refused %q", name, fired, err, len(f.started), tt.want)
		}
	}
}

// TestFiringActsWithRolesOfToday: the runs of a schedule act as the person who wrote it, without the
// roles that the person had, or as a service with the roles that the operator gives to it now.
func TestFiringActsWithRolesOfToday(t *testing.T) {
	t.Parallel()
	known, err := principals.Of(nil, []auth.Principal{{Tenant: "shop", Subject: "report", Roles: []string{"reports"}}, {Tenant: "other", Subject: "gone", Roles: []string{"admin"}}})
	if err != nil {
		t.Fatal(err)
	}
	for runAs, want := range map[string]*auth.Principal{
		"": {Tenant: "shop", Subject: "ann"}, "report": {Tenant: "shop", Subject: "report", Roles: []string{"reports"}}, "gone": nil,
	} {
		f := setupSchedules(t, func(s *schedules.Stored) { s.RunAs, s.Requester.Roles = runAs, []string{"finance"} })
		f.acts.Principals = known
		_, err := f.startRun()
		if want == nil {
			var app *temporal.ApplicationError
			if !errors.As(err, &app) || app.Type() != "unknown_service" || !app.NonRetryable() || len(f.started) > 0 {
				t.Errorf("a service that is not configured: got %v and %d runs, want unknown_service and none", err, len(f.started))
			}
			continue
		}
		if err != nil || len(f.started) != 1 {
			t.Fatalf("runAs %q: got %v and %d runs, want 1", runAs, err, len(f.started))
		}
		input, err := f.log.Input(t.Context(), f.started[0].Input)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, input.Requester); diff != "" {
			t.Errorf("runAs %q: requester (-want +got):\n%s", runAs, diff)
		}
	}
}

// startRun executes the activity that starts the run of a firing.
func (f *scheduleFixture) startRun() (out runs.FiredRun, err error) {
	f.t.Helper()
	value, err := f.env.ExecuteActivity(runs.ActivityStartFiredRun, f.in)
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// runStatus executes the activity that checks the run of a firing.
func (f *scheduleFixture) runStatus() (out runs.RunStatus) {
	f.t.Helper()
	value, err := f.env.ExecuteActivity(runs.ActivityRunStatus, runs.Ref{Tenant: f.run.Tenant, Thread: f.run.Thread.ID, ID: f.run.ID})
	if err == nil {
		err = value.Get(&out)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// cancelRun executes the activity that cancels the run of a firing.
func (f *scheduleFixture) cancelRun() (out runs.RunStatus, err error) {
	f.t.Helper()
	value, err := f.env.ExecuteActivity(runs.ActivityCancelRun, f.in)
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// openRun writes the opening of the run's first step.
func (f *scheduleFixture) openRun(run stream.Run, o stream.Opening) stream.Place {
	f.t.Helper()
	p := stream.Place{Run: run, Lane: stream.LaneMain, Step: "1/model", Execution: "e1"}
	o.RunID, o.Execution = run.ID, "e1"
	var err error
	if p.After, err = f.log.OpenStep(f.t.Context(), p, o, &agui.RunStarted{ThreadID: run.Thread.ID, RunID: run.ID}); err != nil {
		f.t.Fatal(err)
	}
	return p
}

// opening returns the opening of the firing's run.
func (f *scheduleFixture) opening() stream.Opening {
	return stream.Opening{Input: f.started[0].Input, Digest: f.started[0].Digest}
}

// endRun writes the end of the firing's run.
func (f *scheduleFixture) endRun(p stream.Place, outcome *agui.Outcome) {
	f.t.Helper()
	if _, _, err := f.log.Seal(f.t.Context(), p, &agui.RunFinished{ThreadID: p.Run.Thread.ID, RunID: p.Run.ID, Outcome: outcome}); err != nil {
		f.t.Fatal(err)
	}
}

var asksSomething = &agui.Outcome{Type: agui.OutcomeInterrupt, Interrupts: []agui.Interrupt{{ID: "i", Reason: "tool_call", ToolCallID: "c"}}}

// hasCancelRequest reports whether the log has a cancel request for a run.
func (f *scheduleFixture) hasCancelRequest(run stream.Run) bool {
	f.t.Helper()
	requested, err := f.log.CancelRequested(f.t.Context(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	return requested
}

// TestFiringStartsOneRun: one time of a schedule starts one run, although an attempt may die at any
// point and a time may fire twice.
func TestFiringStartsOneRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	want := runs.FiredRun{Run: runs.Ref{Tenant: "shop", Thread: "daily-20300131T090000Z", ID: "daily-20300131T090000Z"}}
	fixture.submit = func(in runs.SubmitRequest) (runs.SubmitResult, error) {
		if in.RunID != fixture.started[0].Run.ID || in.Digest != fixture.started[0].Digest || in.Offer.Input != fixture.started[0].Input {
			t.Errorf("submission: got %+v, want the started run %+v", in, fixture.started[0])
		}
		return runs.SubmitResult{Attached: true}, nil
	}
	for range 2 {
		if out, err := fixture.startRun(); err != nil || out != want {
			t.Fatalf("start: got %+v (%v), want %+v", out, err, want)
		}
	}
	p := fixture.openRun(fixture.run, fixture.opening())
	fixture.submit, want.AlreadyBegun = nil, true // the run may be over, and may have signaled its firing
	if out, err := fixture.startRun(); err != nil || out != want {
		t.Errorf("start after the run has begun: got %+v (%v), want %+v", out, err, want)
	}
	fixture.endRun(p, nil)
	fixture.occupied = false
	if out, err := fixture.startRun(); err != nil || out != want || len(fixture.started) != 1 {
		t.Errorf("start after the run has ended: got %+v after %d starts (%v), want %+v after one", out, len(fixture.started), err, want)
	}
	in := fixture.started[0]
	wantEqual(t, "input of the run: agent", in.Agent, "a")
	wantEqual(t, "input of the run: revision", in.Revision, "v")
	wantEqual(t, "input of the run: firing", in.FiringID, fixture.in.FiringID)
	wantEqual(t, "input of the run: park after", in.ParkAfter, time.Second)
	wantEqual(t, "run is held", in.Hold, true)
	if in.Limits.Turns == 0 {
		t.Errorf("input of the run: limits turns = %v, want not 0", in.Limits.Turns)
	}
	input, err := fixture.log.Input(t.Context(), in.Input)
	if err != nil {
		t.Fatal(err)
	}
	if input.Requester == nil {
		t.Fatal("recorded input: Requester = nil, want a value")
	}
	wantEqual(t, "subject of the requester", input.Requester.Subject, "ann")
	wantEqual(t, "number of new messages", len(input.Accepted.Tail), 1)
	wantEqual(t, "run of the recorded input", input.Input.RunID, fixture.run.ID)
}

// TestFiringContinuesThread: a firing appends to the conversation of its thread.
func TestFiringContinuesThread(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t, func(k *schedules.Stored) { k.ThreadID = "t" })
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	fixture.endRun(fixture.openRun(fixture.run, fixture.opening()), nil)
	fixture.occupied, fixture.in.At = false, fixture.in.At.Add(24*time.Hour)
	if out, err := fixture.startRun(); err != nil || out.Run.Thread != "t" || len(fixture.started) != 2 {
		t.Fatalf("second start: got %+v (%v) after %d starts, want the thread t after two", out, err, len(fixture.started))
	}
	input, err := fixture.log.Input(t.Context(), fixture.started[1].Input)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "number of kept messages of the second input", input.Accepted.Keep, 1)
	wantEqual(t, "conversation of the second input is cut", input.Accepted.Cut, false)
	wantEqual(t, "number of new messages of the second input", len(input.Accepted.Tail), 1)
}

// TestFiringAfterHandoff: if a schedule's thread was handed off, its runs belong to the
// target agent.
func TestFiringAfterHandoff(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t, func(k *schedules.Stored) { k.ThreadID = "t" })
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	p := fixture.openRun(fixture.run, fixture.opening())
	call := stream.Place{Run: fixture.run, Lane: stream.LaneMain.Tool(0), Step: "1/tools/0", Execution: "e1"}
	a, _, err := fixture.log.Begin(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Finish(t.Context(), &stream.Result{Handoff: &stream.Handoff{From: "a", To: "b"}}); err != nil {
		t.Fatal(err)
	}
	fixture.endRun(p, nil)
	fixture.occupied, fixture.in.At = false, fixture.in.At.Add(24*time.Hour)
	if out, err := fixture.startRun(); err != nil || len(fixture.started) != 2 || fixture.started[1].Agent != "b" {
		t.Errorf("start after the handoff: got %+v (%v) with the runs %+v, want a second run of b", out, err, fixture.started)
	}
}

func TestThreadRefusesFiring(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t, func(k *schedules.Stored) { k.OnBusy = runs.OnBusyReject })
	fixture.occupied = true
	fixture.submit = func(in runs.SubmitRequest) (runs.SubmitResult, error) {
		if in.OnBusy != runs.OnBusyReject {
			t.Errorf("onBusy = %s, want %s", in.OnBusy, runs.OnBusyReject)
		}
		return runs.SubmitResult{}, temporal.NewApplicationError("busy", runs.ErrorBusy, runs.ActiveRun{RunID: "other"})
	}
	out, err := fixture.startRun()
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "refusal of the firing", out.Refused, runs.ErrorBusy)
}

// TestFiringsAreRecorded: the audit log of the tenant has each firing with its run and the reason of a
// refusal. An entry that cannot be written fails the attempt, and the retry writes it.
func TestFiringsAreRecorded(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	log, err := store.Open(t.Context(), fixture.log)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := store.NewWriter(log)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	fixture.acts.Audit = closed
	var app *temporal.ApplicationError
	if _, err := fixture.startRun(); !errors.As(err, &app) || app.NonRetryable() || len(fixture.started) != 1 {
		t.Errorf("without the audit log: got %v and %d runs, want an error that is retried, after the run began", err, len(fixture.started))
	}
	if fixture.acts.Audit, err = store.NewWriter(log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fixture.acts.Audit.Close)
	fixture.submit = func(runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{Attached: true}, nil }
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	fixture.submit = func(runs.SubmitRequest) (runs.SubmitResult, error) {
		return runs.SubmitResult{}, temporal.NewApplicationError("busy", runs.ErrorBusy, runs.ActiveRun{RunID: "other"})
	}
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	fixture.in.Revision = 1000
	if _, err := fixture.startRun(); err == nil {
		t.Fatal("a schedule that is gone: got no error")
	}
	page, err := log.Page(t.Context(), store.OfTenant("shop"), store.Filter{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, raw := range page.Entries {
		e, err := audit.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		actor := ""
		if e.Actor != nil {
			actor = e.Actor.Subject
		}
		got = append(got, fmt.Sprintf("%s %s %s %s: %s on %s of %s by %q", e.Action, e.Schedule, e.Outcome, e.Code, e.Run, e.Thread, e.Agent, actor))
	}
	id := fixture.run.ID
	slices.Sort(got)
	want := []string{
		`schedule.fire daily accepted : ` + id + ` on ` + id + ` of a by "ann"`,
		`schedule.fire daily denied busy: ` + id + ` on ` + id + ` of a by "ann"`,
		`schedule.fire daily denied schedule_gone:  on  of  by ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// TestFiringRespectsQuotas: a tenant that has reached its quota of runs gets no run of a schedule,
// except one that an earlier attempt has started.
func TestFiringRespectsQuotas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		active  int64
		started bool // by an earlier attempt
		want    string
		runs    int
	}{
		"below":                 {1, false, "", 1},
		"reached":               {2, false, "quota_exceeded", 0},
		"reached after a start": {2, true, "", 1},
		"reached by default":    {10_000, false, "quota_exceeded", 0},
	} {
		fixture := setupSchedules(t)
		table, err := quota.Parse([]byte("tenants: {shop: {runs: 2}}"))
		if err != nil {
			t.Fatal(err)
		}
		if tt.active == 10_000 {
			table = nil
		}
		fixture.submit = func(runs.SubmitRequest) (runs.SubmitResult, error) { return runs.SubmitResult{Attached: true}, nil }
		if tt.started {
			if _, err := fixture.startRun(); err != nil {
				t.Fatal(err)
			}
		}
		fixture.acts.Quotas = &quota.Meter{Table: table, Counts: map[quota.Name]quota.Count{
			quota.Runs: func(_ context.Context, tenant string) (int64, error) {
				wantEqual(t, name+": tenant", tenant, "shop")
				return tt.active, nil
			},
		}}
		out, err := fixture.startRun()
		if err != nil || out.Refused != tt.want || len(fixture.started) != tt.runs {
			t.Errorf("%s: firing = %+v, %v with %d runs, want refused %q and %d runs", name, out, err, len(fixture.started), tt.want, tt.runs)
		}
	}
}

func TestFailuresOfFiring(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t, func(k *schedules.Stored) { k.Agent = "gone" })
	failed := func(want string) {
		t.Helper()
		_, err := fixture.startRun()
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Type() != want || !app.NonRetryable() {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	failed("unknown_agent")
	fixture.in.Revision = 1000
	failed("schedule_gone")
}

func TestStatusOfFiredRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	check := func(what string, want runs.RunStatus) {
		t.Helper()
		if got := fixture.runStatus(); got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	check("started", runs.RunStatus{})
	fixture.occupied = false
	check("terminated", runs.RunStatus{Over: true, RunEnd: runs.RunEnd{Outcome: runs.OutcomeError, Code: "workflow_closed"}})
	fixture.occupied = true
	fixture.endRun(fixture.openRun(fixture.run, fixture.opening()), asksSomething)
	end := runs.RunEnd{Outcome: runs.OutcomeInterrupt}
	check("waiting for a decision", runs.RunStatus{RunEnd: end})
	fixture.occupied = false
	check("waiting, without a workflow", runs.RunStatus{Over: true, RunEnd: end})
}

func TestStatusOfEndedRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	fixture.endRun(fixture.openRun(fixture.run, fixture.opening()), nil)
	got := fixture.runStatus()
	wantEqual(t, "run is over", got.Over, true)
	wantEqual(t, "outcome of the run", got.Outcome, runs.OutcomeSuccess)
}

func TestCancelFiredRun(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	if out, err := fixture.cancelRun(); err != nil || !out.Over || fixture.hasCancelRequest(fixture.run) {
		t.Errorf("cancel before the run: got %+v (%v), want it over without a request", out, err)
	}
	if _, err := fixture.startRun(); err != nil {
		t.Fatal(err)
	}
	p := fixture.openRun(fixture.run, fixture.opening())
	if out, err := fixture.cancelRun(); err != nil || out != (runs.RunStatus{}) || !fixture.hasCancelRequest(fixture.run) || len(fixture.signals) != 1 || fixture.signals[0].RunID != fixture.run.ID {
		t.Errorf("cancel of the run: got %+v, signals %+v (%v), want a request and one signal", out, fixture.signals, err)
	}
	fixture.endRun(p, asksSomething)
	if out, err := fixture.cancelRun(); err != nil || out.Over || out.Outcome != runs.OutcomeInterrupt || len(fixture.signals) != 1 {
		t.Errorf("cancel of a waiting run: got %+v, signals %+v (%v), want the outcome interrupt", out, fixture.signals, err)
	}
	next := stream.Run{Thread: fixture.run.Thread, ID: "run_next"}
	fixture.openRun(next, stream.Opening{Continues: fixture.run.ID})
	if _, err := fixture.cancelRun(); err != nil || !fixture.hasCancelRequest(next) {
		t.Errorf("cancel of a continued run: got no request for its successor (%v), want one", err)
	}
}

// TestCancelFiredRunOfDroppedRevision: a schedule keeps a bounded number of revisions.
// A run of a dropped revision can still be cancelled.
func TestCancelFiredRunOfDroppedRevision(t *testing.T) {
	t.Parallel()
	fixture := setupSchedules(t)
	fired, err := fixture.startRun()
	if err != nil {
		t.Fatal(err)
	}
	fixture.openRun(fixture.run, fixture.opening())
	fixture.in.Revision, fixture.in.Fired = fixture.in.Revision+100, &fired
	if _, err := fixture.cancelRun(); err != nil || !fixture.hasCancelRequest(fixture.run) {
		t.Errorf("cancel of a run: got no request (%v), want one", err)
	}
}
