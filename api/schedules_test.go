package api_test

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
)

// clockStub is Temporal's schedules, by ID. It is safe for concurrent use.
type clockStub struct {
	client.ScheduleClient
	mu        sync.Mutex
	schedules map[string]*client.ScheduleDescription
	triggered []client.ScheduleTriggerOptions
	late      atomic.Int32 // how many Describe calls time out
	away      error        // the error of each command; nil = none
}

type handleStub struct {
	client.ScheduleHandle
	clock *clockStub
	id    string
}

func (s *temporalStub) ScheduleClient() client.ScheduleClient { return &s.clock }

func (c *clockStub) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return nil, c.away
	}
	if c.schedules[o.ID] != nil {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	if c.schedules == nil {
		c.schedules = map[string]*client.ScheduleDescription{}
	}
	c.schedules[o.ID] = &client.ScheduleDescription{Schedule: client.Schedule{
		Action: o.Action, Spec: &o.Spec, State: &client.ScheduleState{},
		Policy: &client.SchedulePolicies{Overlap: o.Overlap, CatchupWindow: o.CatchupWindow, PauseOnFailure: o.PauseOnFailure},
	}}
	return nil, nil
}

func (c *clockStub) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return &handleStub{clock: c, id: id}
}

// with calls do with the schedule, if it exists.
func (h *handleStub) with(do func(d *client.ScheduleDescription)) error {
	h.clock.mu.Lock()
	defer h.clock.mu.Unlock()
	d := h.clock.schedules[h.id]
	if d == nil {
		return serviceerror.NewNotFound("none")
	}
	do(d)
	return nil
}

func (h *handleStub) Describe(context.Context) (out *client.ScheduleDescription, err error) {
	if h.clock.late.Add(-1) >= 0 {
		return nil, serviceerror.NewDeadlineExceeded("context deadline exceeded")
	}
	err = h.with(func(d *client.ScheduleDescription) { c := *d; out = &c })
	return out, err
}

func (h *handleStub) Update(_ context.Context, o client.ScheduleUpdateOptions) (err error) {
	return h.with(func(d *client.ScheduleDescription) {
		if u, failed := o.DoUpdate(client.ScheduleUpdateInput{Description: *d}); failed == nil {
			d.Schedule = *u.Schedule
		}
	})
}

func (h *handleStub) Pause(context.Context, client.SchedulePauseOptions) error {
	return h.with(func(d *client.ScheduleDescription) { d.Schedule.State.Paused = true })
}

func (h *handleStub) Unpause(context.Context, client.ScheduleUnpauseOptions) error {
	return h.with(func(d *client.ScheduleDescription) { d.Schedule.State.Paused = false })
}

func (h *handleStub) Trigger(_ context.Context, o client.ScheduleTriggerOptions) error {
	err := h.with(func(*client.ScheduleDescription) { h.clock.triggered = append(h.clock.triggered, o) })
	return cmp.Or(h.clock.away, err)
}

func (h *handleStub) Delete(context.Context) error {
	return h.with(func(*client.ScheduleDescription) { delete(h.clock.schedules, h.id) })
}

type fireStub struct {
	client.WorkflowRun
	ended func() (runs.FiringResult, error)
}

func (f fireStub) Get(_ context.Context, to any) (err error) {
	*to.(*runs.FiringResult), err = f.ended()
	return err
}

// firingOf returns the input of a schedule's firings in Temporal.
func (n *node) firingOf(tenant, id string) runs.FiringInput {
	n.t.Helper()
	var in runs.FiringInput
	err := n.temporal.clock.GetHandle(n.ctx(), schedules.TemporalID(tenant, id)).(*handleStub).with(func(d *client.ScheduleDescription) {
		in = d.Schedule.Action.(*client.ScheduleWorkflowAction).Args[0].(runs.FiringInput)
	})
	if err != nil {
		n.t.Fatalf("Temporal has no schedule %s: %v", id, err)
	}
	return in
}

// scheduleWith returns a schedule with the given members.
func scheduleWith(t *testing.T, members map[string]any) string {
	t.Helper()
	body := map[string]any{
		"id": "s", "agent": "a", "cron": []string{"0 9 * * *"},
		"input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": "Good morning."}}},
	}
	maps.Copy(body, members)
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// shownSchedule is a schedule as clients see it.
type shownSchedule struct {
	ID        string          `json:"id"`
	Overlap   string          `json:"overlap"`
	ChangedBy string          `json:"changedBy"`
	Paused    bool            `json:"paused"`
	Next      []time.Time     `json:"next"`
	Input     json.RawMessage `json:"input"`
	Recent    []struct {
		ScheduledAt time.Time `json:"scheduledAt"`
		ThreadID    string    `json:"threadId"`
		RunID       string    `json:"runId"`
		Outcome     string    `json:"outcome"`
		Code        string    `json:"code"`
		Active      bool      `json:"active"`
	} `json:"recent"`
}

// schedule checks the status, and returns the schedule of the body.
func (a answer) schedule(t *testing.T, status int) (out shownSchedule) {
	t.Helper()
	if a.status != status {
		t.Fatalf("%d %s, want %d", a.status, a.body, status)
	}
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// wantRefusal checks the status, the code and the pointer of a problem.
func (a answer) wantRefusal(t *testing.T, what string, status int, code, pointer string) {
	t.Helper()
	if a.status != status || a.problem.Code != code || a.problem.Pointer != pointer {
		t.Errorf("%s: %d %s, want %d %s at %q", what, a.status, a.body, status, code, pointer)
	}
}

func TestTemporalDoesNotHaveScheduleContent(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	made := node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil), alpha...).schedule(t, http.StatusCreated)
	wantEqual(t, "ID", made.ID, "s")
	wantEqual(t, "overlap policy", made.Overlap, "skip")
	wantEqual(t, "author of the change", made.ChangedBy, "ann")
	if !strings.Contains(string(made.Input), "Good morning.") {
		t.Errorf("input = %q, want text with %q", string(made.Input), "Good morning.")
	}
	action := node.temporal.clock.schedules[schedules.TemporalID("alpha", "s")].Schedule.Action.(*client.ScheduleWorkflowAction)
	wantEqual(t, "fairness key of the firing", action.Priority.FairnessKey, "alpha")
	in := node.firingOf("alpha", "s")
	wantEqual(t, "tenant of the firing in Temporal", in.Tenant, "alpha")
	wantEqual(t, "schedule of the firing in Temporal", in.Schedule, "s")
	if in.Revision == 0 {
		t.Errorf("input in Temporal: Revision = %v, want not 0", in.Revision)
	}
	store, err := schedules.Open(node.ctx(), node.log)
	if err != nil {
		t.Fatal(err)
	}
	k, err := store.At(node.ctx(), "alpha", "s", in.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if k.Requester == nil {
		t.Fatal("stored schedule: Requester = nil, want a value")
	}
	wantEqual(t, "subject of the requester in the store", k.Requester.Subject, "ann")
	wantEqual(t, "tenant of the requester in the store", k.Requester.Tenant, "alpha")
}

// TestOnlyAdministratorsLetSchedulesRunAsService: an administrator may let a schedule run as a
// configured service. The store has no roles, which would have an effect long after they are lost.
func TestOnlyAdministratorsLetSchedulesRunAsService(t *testing.T) {
	t.Parallel()
	known, err := principals.Of(nil, []auth.Principal{{Tenant: "alpha", Subject: "report", Roles: []string{"reports"}}, {Tenant: "beta", Subject: "betas"}})
	if err != nil {
		t.Fatal(err)
	}
	node := setup(t, func(c *api.Config) { c.Auth, c.Principals = byHeader, known })
	root := []string{"X-Tenant", "alpha", "X-User", "root", "X-Roles", policy.DefaultRoles.TenantAdmin}
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"runAs": "report"}), alpha...).wantRefusal(t, "runAs of ann", http.StatusForbidden, "forbidden", "/runAs")
	for _, service := range []string{"betas", "nobody"} {
		node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"runAs": service}), root...).wantRefusal(t, "runAs "+service, http.StatusBadRequest, "invalid_schedule", "/runAs")
	}
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"runAs": "report"}), root...).schedule(t, http.StatusCreated)
	store, err := schedules.Open(node.ctx(), node.log)
	if err != nil {
		t.Fatal(err)
	}
	k, err := store.Get(node.ctx(), "alpha", "s")
	if err != nil {
		t.Fatal(err)
	}
	if k.RunAs != "report" || len(k.Requester.Roles) > 0 || len(k.Owner.Roles) > 0 {
		t.Errorf("stored schedule = %+v, requester %+v, owner %+v, want runAs report and no roles", k, k.Requester, k.Owner)
	}
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": "s2"}), alpha...).schedule(t, http.StatusCreated)
	node.do(http.MethodPut, "/v1/schedules/s2", scheduleWith(t, map[string]any{"id": "s2", "runAs": "report"}), alpha...).wantRefusal(t, "PUT of ann", http.StatusForbidden, "forbidden", "/runAs")
}

// TestAuthorOfScheduleMayDoWhatItsRunsDo: the runs of a schedule have no roles, so policies by role
// apply to the caller that writes the schedule. With runAs they apply to the service.
func TestAuthorOfScheduleMayDoWhatItsRunsDo(t *testing.T) {
	t.Parallel()
	known, err := principals.Of(nil, []auth.Principal{{Tenant: "alpha", Subject: "report", Roles: []string{"trusted"}}, {Tenant: "alpha", Subject: "visitor", Roles: []string{"contractor"}}})
	if err != nil {
		t.Fatal(err)
	}
	node := setup(t, func(c *api.Config) {
		c.Auth, c.Principals = byHeader, known
		c.Policies, err = policy.New(policy.DefaultRoles, policy.File{Name: "own.cedar", Text: []byte(`
@id("no-contractors") forbid (principal in Role::"contractor", action == Action::"createThread", resource);
@id("no-readers") forbid (principal in Role::"reader", action == Action::"runThread", resource);
@id("only-trusted") forbid (principal, action == Action::"createThread", resource) when { ["tom", "report"].contains(principal.subject) } unless { principal in Role::"trusted" };`)})
		if err != nil {
			t.Fatal(err)
		}
	})
	admin := policy.DefaultRoles.TenantAdmin
	first := stream.Run{Thread: stream.Thread{Tenant: "alpha", ID: "t"}, ID: "r1"}
	if _, err := node.log.ProposeFirstInput(node.ctx(), first, [32]byte{1}, &stream.Input{Requester: &auth.Principal{Tenant: "alpha", Subject: "ann"}}); err != nil {
		t.Fatal(err)
	}
	write := func(method, path string, members map[string]any, by []string) answer {
		return node.do(method, "/v1/schedules"+path, scheduleWith(t, members), by...)
	}
	write(http.MethodPost, "", map[string]any{"id": "anns"}, headersOf("ann")).schedule(t, http.StatusCreated)
	onThread, onNewThread := map[string]any{"threadId": "t"}, map[string]any{"threadId": "new"}
	for name, tt := range map[string]struct {
		members       map[string]any
		by            []string
		rule, pointer string // of the denial; "" = the schedule is written
	}{
		"a new thread for each run":                {nil, headersOf("ann", "contractor"), "no-contractors", ""},
		"a named thread that does not exist":       {onNewThread, headersOf("ann", "contractor"), "no-contractors", "/threadId"},
		"the same for later runs":                  {onNewThread, headersOf("ann", "reader"), "no-readers", "/threadId"},
		"an own thread":                            {onThread, headersOf("ann", "reader"), "no-readers", "/threadId"},
		"an own thread, begins none":               {onThread, headersOf("ann", "contractor"), "", ""},
		"a new thread for each run, sends to none": {nil, headersOf("ann", "reader"), "", ""},
		"a thread of another caller":               {onThread, headersOf("bert"), policy.RuleNone, "/threadId"},
		"the same by an administrator":             {onThread, headersOf("bert", admin), policy.RuleNone, "/threadId"},
		"a permission by a role":                   {nil, headersOf("tom", "trusted"), "only-trusted", ""},
		"a service with the role":                  {map[string]any{"runAs": "report"}, headersOf("tom", admin), "", ""},
		"a service that may not":                   {map[string]any{"runAs": "visitor"}, headersOf("ann", admin), "no-contractors", ""},
	} {
		members := map[string]any{"id": ""}
		maps.Copy(members, tt.members)
		a := write(http.MethodPost, "", members, tt.by)
		if tt.rule == "" {
			wantEqual(t, name+": status of "+a.body, a.status, http.StatusCreated)
			continue
		}
		a.wantRefusal(t, name, http.StatusForbidden, "forbidden", tt.pointer)
		wantEqual(t, name+": rule", a.problem.Rule, tt.rule)
	}
	changed := map[string]any{"id": "anns", "overlap": "buffer_one"}
	a := write(http.MethodPut, "/anns", changed, headersOf("ann", "contractor"))
	a.wantRefusal(t, "PUT of a contractor", http.StatusForbidden, "forbidden", "")
	wantEqual(t, "PUT of a contractor: rule", a.problem.Rule, "no-contractors")
	write(http.MethodPut, "/anns", changed, headersOf("ann")).schedule(t, http.StatusOK)
}

// TestSchedulesDoNotTerminateFirings: a firing that Temporal terminates could not cancel its run.
func TestSchedulesDoNotTerminateFirings(t *testing.T) {
	t.Parallel()
	node := setup(t)
	for _, overlap := range []string{"cancel_other", "terminate_other"} {
		node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": overlap, "overlap": overlap})).schedule(t, http.StatusCreated)
		overlapPolicy := node.temporal.clock.schedules[schedules.TemporalID("default", overlap)].Schedule.Policy.Overlap
		in := node.firingOf("default", overlap)
		wantEqual(t, overlap+": policy in Temporal", overlapPolicy, enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER)
		wantEqual(t, overlap+": firing may cancel a run", in.TryCancel, overlap == "terminate_other")
	}
}

func TestScheduleIsCreatedOnce(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil)).schedule(t, http.StatusCreated)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"overlap": "skip"})).schedule(t, http.StatusOK)
	other := scheduleWith(t, map[string]any{"overlap": "allow_all"})
	exists := node.do(http.MethodPost, "/v1/schedules", other)
	exists.wantRefusal(t, "another one", http.StatusConflict, "schedule_exists", "")
	if !strings.Contains(exists.problem.Detail, `the schedule "s"`) {
		t.Errorf("problem detail = %q, want text with %q", exists.problem.Detail, `the schedule "s"`)
	}
	// An API process may die between the two writes: a schedule that Temporal does not have does
	// not exist.
	delete(node.temporal.clock.schedules, schedules.TemporalID("default", "s"))
	node.do(http.MethodGet, "/v1/schedules/s", "").wantRefusal(t, "shown", http.StatusNotFound, "unknown_schedule", "")
	list := node.do(http.MethodGet, "/v1/schedules", "")
	wantEqual(t, "list", list.body, `{"items":[]}`)
	now := node.do(http.MethodPost, "/v1/schedules", other).schedule(t, http.StatusCreated)
	wantEqual(t, "overlap policy", now.Overlap, "allow_all")
	made := node.do(http.MethodPost, "/v1/schedules", strings.Replace(other, `"id":"s",`, "", 1)).schedule(t, http.StatusCreated)
	if !strings.HasPrefix(made.ID, "sch_") {
		t.Errorf("without an id: ID = %q, want prefix %q", made.ID, "sch_")
	}
}

func TestUpdateSchedule(t *testing.T) {
	t.Parallel()
	node := setup(t, func(c *api.Config) { c.Auth = byHeader })
	bert := headersOf("bert", policy.DefaultRoles.TenantAdmin)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil), alpha...).schedule(t, http.StatusCreated)
	first := node.firingOf("alpha", "s")
	a := node.do(http.MethodPost, "/v1/schedules/s/pause", "", alpha...)
	a.mustStatus(t, "status", http.StatusNoContent)
	if same := node.do(http.MethodPut, "/v1/schedules/s", scheduleWith(t, nil), bert...).schedule(t, http.StatusOK); same.ChangedBy != "ann" {
		t.Errorf("changedBy after an equal PUT: got %+v, want ann", same)
	}
	now := node.do(http.MethodPut, "/v1/schedules/s", scheduleWith(t, map[string]any{"overlap": "buffer_one"}), bert...).schedule(t, http.StatusOK)
	wantEqual(t, "overlap policy", now.Overlap, "buffer_one")
	wantEqual(t, "author of the change", now.ChangedBy, "bert")
	wantEqual(t, "schedule is paused", now.Paused, true)
	in := node.firingOf("alpha", "s")
	if in.Revision == first.Revision {
		t.Errorf("revision in Temporal = %v, want another than before", in.Revision)
	}
	node.do(http.MethodPut, "/v1/schedules/s", scheduleWith(t, map[string]any{"threadId": "t"}), bert...).wantRefusal(t, "another thread", http.StatusBadRequest, "invalid_schedule", "/threadId")
	node.do(http.MethodPut, "/v1/schedules/s", scheduleWith(t, map[string]any{"id": "x"}), bert...).wantRefusal(t, "another id", http.StatusBadRequest, "invalid_schedule", "/id")
	node.do(http.MethodPut, "/v1/schedules/x", scheduleWith(t, map[string]any{"id": "x"}), bert...).wantRefusal(t, "none", http.StatusNotFound, "unknown_schedule", "")
}

func TestProblemsPointIntoSchedule(t *testing.T) {
	t.Parallel()
	node := setup(t)
	for _, c := range []struct {
		members     map[string]any
		wantStatus  int
		wantCode    string
		wantPointer string
	}{
		{map[string]any{"cron": []string{"0 25 * * *"}}, 400, "invalid_schedule", "/cron/0"},
		{map[string]any{"timeZone": "Mars/Olympus"}, 400, "invalid_schedule", "/timeZone"},
		{map[string]any{"agent": "nobody"}, 404, "unknown_agent", "/agent"},
		{map[string]any{"id": strings.Repeat("x", 257)}, 400, "invalid_input", "/id"},
		{map[string]any{"id": "a\x00b"}, 400, "invalid_input", "/id"},
		{map[string]any{"threadId": "a\x00b"}, 400, "invalid_input", "/threadId"},
		{map[string]any{"input": map[string]any{"messages": []any{map[string]any{"role": "user"}}}}, 400, "invalid_schedule", "/input/messages/0/content"},
		{map[string]any{"note": strings.Repeat("x", 128<<10)}, 413, "too_large", ""},
	} {
		node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, c.members)).wantRefusal(t, fmt.Sprintf("%.100v", c.members), c.wantStatus, c.wantCode, c.wantPointer)
	}
	node.do(http.MethodPost, "/v1/schedules", "x=y", "Content-Type", "application/x-www-form-urlencoded").wantRefusal(t, "a form", 415, "unsupported_media_type", "")
	if len(node.temporal.clock.schedules) != 0 {
		t.Errorf("schedules in Temporal: got %v, want none", node.temporal.clock.schedules)
	}
}

func TestScheduleCommands(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil)).schedule(t, http.StatusCreated)
	do := func(method, path, body string, status int) {
		t.Helper()
		if a := node.do(method, "/v1/schedules/s"+path, body); a.status != status {
			t.Errorf("%s %s: got %d %s, want %d", method, path, a.status, a.body, status)
		}
	}
	do(http.MethodPost, "/pause", "", http.StatusNoContent)
	do(http.MethodPost, "/pause", "", http.StatusNoContent)
	if !node.do(http.MethodGet, "/v1/schedules/s", "").schedule(t, http.StatusOK).Paused {
		t.Error("schedule is not paused, want it paused")
	}
	node.temporal.clock.late.Store(1) // the next Describe times out
	do(http.MethodGet, "", "", http.StatusOK)
	do(http.MethodPost, "/resume", "", http.StatusNoContent)
	do(http.MethodPost, "/trigger", `{"overlap":"allow_all"}`, http.StatusNoContent)
	do(http.MethodPost, "/trigger", "", http.StatusNoContent)
	node.do(http.MethodPost, "/v1/schedules/s/trigger", `{"overlap":"never"}`).wantRefusal(t, "an overlap", 400, "invalid_schedule", "/overlap")
	mustEqual(t, "number of triggers", len(node.temporal.clock.triggered), 2)
	wantEqual(t, "overlap policy of the first trigger", node.temporal.clock.triggered[0].Overlap.String(), "AllowAll")
	wantEqual(t, "overlap policy of the second trigger", node.temporal.clock.triggered[1].Overlap, 0)
	do(http.MethodDelete, "", "", http.StatusNoContent)
	for _, path := range []string{"", "/pause", "/resume", "/trigger"} {
		method := http.MethodPost
		if path == "" {
			method = http.MethodDelete
		}
		node.do(method, "/v1/schedules/s"+path, "").wantRefusal(t, path, http.StatusNotFound, "unknown_schedule", "")
	}
}

func TestSchedulesListTheirFirings(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": "s s"})).schedule(t, http.StatusCreated)
	at := time.Date(2030, 1, 31, 9, 0, 0, 0, time.UTC)
	var recent []client.ScheduleActionResult
	for i := range 3 {
		id := schedules.FireID("default", "s s") + "-" + at.Add(time.Duration(i)*time.Hour).Format(time.RFC3339)
		recent = append(recent, client.ScheduleActionResult{ActualTime: at, StartWorkflowResult: &client.ScheduleWorkflowExecution{WorkflowID: id}})
	}
	d := node.temporal.clock.schedules[schedules.TemporalID("default", "s s")]
	d.Info = client.ScheduleInfo{
		RecentActions: append(recent, client.ScheduleActionResult{}), NextActionTimes: []time.Time{at.Add(24 * time.Hour)},
	}
	node.temporal.lasts = func(workflow string) bool { return workflow == recent[2].StartWorkflowResult.WorkflowID }
	for i, end := range []agui.Event{&agui.RunFinished{}, &agui.RunError{Code: "limit_turns", Message: "no"}} {
		name := fmt.Sprintf("s s-2030013%dT%02d0000Z", 1, 9+i)
		in := runs.Input{Run: runs.Ref{Tenant: "default", Thread: name, ID: name}}
		run := streamRun(in)
		var err error
		in.Digest = "d"
		if in.Input, err = node.propose(run); err != nil {
			t.Fatal(err)
		}
		if _, _, err := node.log.Seal(node.ctx(), node.begin(in, "e"), end); err != nil {
			t.Fatal(err)
		}
	}
	now := node.do(http.MethodGet, "/v1/schedules/s%20s", "").schedule(t, http.StatusOK)
	mustEqual(t, "number of next firings", len(now.Next), 1)
	mustEqual(t, "number of recent firings", len(now.Recent), 3)
	for i, want := range []struct {
		run, wantOutcome, wantCode string
		wantActive                 bool
	}{{"s s-20300131T110000Z", "", "", true}, {"s s-20300131T100000Z", "error", "limit_turns", false}, {"s s-20300131T090000Z", "success", "", false}} {
		if r := now.Recent[i]; r.RunID != want.run || r.ThreadID != want.run || r.Outcome != want.wantOutcome || r.Code != want.wantCode || r.Active != want.wantActive {
			t.Errorf("%d: %+v, want %+v", i, r, want)
		}
	}
}

// TestScheduleListsRefusedFirings: a time without a run has the outcome of its firing.
func TestScheduleListsRefusedFirings(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil)).schedule(t, http.StatusCreated)
	id := schedules.FireID("default", "s") + "-2030-01-31T09:00:00Z"
	node.temporal.clock.schedules[schedules.TemporalID("default", "s")].Info.RecentActions = []client.ScheduleActionResult{
		{StartWorkflowResult: &client.ScheduleWorkflowExecution{WorkflowID: id}},
	}
	for _, c := range []struct {
		result                runs.FiringResult
		err                   error
		wantOutcome, wantCode string
	}{
		{runs.FiringResult{FiredRun: runs.FiredRun{Refused: runs.ErrorBusy}}, nil, "refused", "busy"},
		{runs.FiringResult{}, temporal.NewNonRetryableApplicationError("no", "unknown_agent", nil), "failed", "unknown_agent"},
		{runs.FiringResult{}, temporal.NewCanceledError(), "cancelled", ""},
		{runs.FiringResult{}, serviceerror.NewNotFound("forgotten"), "", ""},
	} {
		node.temporal.lasts = func(string) bool { return false }
		node.temporal.fired = func(string) (runs.FiringResult, error) { return c.result, c.err }
		if r := node.do(http.MethodGet, "/v1/schedules/s", "").schedule(t, http.StatusOK).Recent; len(r) != 1 || r[0].Outcome != c.wantOutcome || r[0].Code != c.wantCode {
			t.Errorf("%+v, want %s %s", r, c.wantOutcome, c.wantCode)
		}
	}
	node.temporal.fired = func(string) (runs.FiringResult, error) { return runs.FiringResult{}, temporal.NewCanceledError() }
	in := runs.Input{Run: runs.Ref{Tenant: "default", Thread: "s-20300131T090000Z", ID: "s-20300131T090000Z"}, Digest: "d"}
	becomes := func(when, outcome string) {
		t.Helper()
		if r := node.do(http.MethodGet, "/v1/schedules/s", "").schedule(t, http.StatusOK).Recent; len(r) != 1 || r[0].Outcome != outcome {
			t.Errorf("%s: %+v, want %q", when, r, outcome)
		}
	}
	var err error
	if in.Input, err = node.propose(streamRun(in)); err != nil {
		t.Fatal(err)
	}
	becomes("queued", "")
	if _, err := node.log.RequestCancel(node.ctx(), streamRun(in), stream.Cancel{Reason: "no"}); err != nil {
		t.Fatal(err)
	}
	becomes("cancelled in the queue", "cancelled")
	node.begin(in, "e")
	becomes("active", "")
}

// propose writes the proposed record of an input for a run.
func (n *node) propose(run stream.Run) (uint64, error) {
	p, err := n.log.ProposeInput(n.ctx(), run, [32]byte{1}, &stream.Input{Input: agui.RunAgentInput{ThreadID: run.Thread.ID, RunID: run.ID}})
	return p.Seq, err
}

func TestSchedulesAreListedInPages(t *testing.T) {
	t.Parallel()
	node := setup(t)
	for i := range 3 {
		node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, map[string]any{"id": fmt.Sprintf("s%d", i)})).schedule(t, http.StatusCreated)
	}
	var page struct {
		Items      []shownSchedule `json:"items"`
		NextCursor string          `json:"nextCursor"`
	}
	var seen []string
	for path := "/v1/schedules?limit=2"; path != ""; {
		a := node.do(http.MethodGet, path, "")
		page.NextCursor = ""
		err := json.Unmarshal([]byte(a.body), &page)
		if err != nil {
			t.Fatalf("%s: %v", a.body, err)
		}
		for _, s := range page.Items {
			seen = append(seen, s.ID)
			wantEqual(t, "input in the list", s.Input, nil)
		}
		if path = ""; page.NextCursor != "" {
			path = "/v1/schedules?limit=2&cursor=" + page.NextCursor
		}
	}
	if got := strings.Join(seen, " "); got != "s0 s1 s2" {
		t.Errorf("schedules of all pages = %q, want %q", got, "s0 s1 s2")
	}
	node.do(http.MethodGet, "/v1/schedules?limit=0", "").wantRefusal(t, "no limit", 400, "invalid_input", "")
	ofTenant := func(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }
	for _, cursor := range []string{"x", "s0", "%25", ofTenant("s0"), ofTenant("other.s0"), ofTenant("default.s.0"), ofTenant("default.")} {
		node.do(http.MethodGet, "/v1/schedules?cursor="+cursor, "").wantRefusal(t, "cursor "+cursor, http.StatusBadRequest, "invalid_cursor", "")
	}
}

// TestUnsafeRetryIsNamed: a 503 says that a repetition is safe only if it has no second
// effect.
func TestUnsafeRetryIsNamed(t *testing.T) {
	t.Parallel()
	node := setup(t)
	node.do(http.MethodPost, "/v1/schedules", scheduleWith(t, nil)).schedule(t, http.StatusCreated)
	node.temporal.clock.away = serviceerror.NewUnavailable("SECRET ADDRESS")
	node.completeRuns()
	node.post(inputOf("r1", "hello"))
	for _, c := range []struct {
		path, body string
		wantSafe   bool
	}{
		{"/v1/schedules/s/trigger", "", false},
		{"/v1/schedules", scheduleWith(t, map[string]any{"id": ""}), false},
		{"/v1/schedules", scheduleWith(t, map[string]any{"id": "other"}), true},
	} {
		a := node.do(http.MethodPost, c.path, c.body)
		if safe := strings.Contains(a.problem.Detail, "again is safe"); a.status != http.StatusServiceUnavailable || a.problem.Code != "unavailable" || safe != c.wantSafe || strings.Contains(a.body, "SECRET") {
			t.Errorf("POST %s %.20s: got %d %s, want %d unavailable, safe to repeat: %t", c.path, c.body, a.status, a.body, http.StatusServiceUnavailable, c.wantSafe)
		}
	}
	node.nats.Shutdown()
	for body, want := range map[string]bool{"": false, `{"threadId":"fork"}`: true} {
		a := node.do(http.MethodPost, "/v1/threads/t/runs/r1/fork", body)
		if safe := strings.Contains(a.problem.Detail, "again is safe"); a.status != http.StatusServiceUnavailable || safe != want {
			t.Errorf("fork %s: got %d %s, want %d, safe to repeat: %t", body, a.status, a.body, http.StatusServiceUnavailable, want)
		}
	}
}
