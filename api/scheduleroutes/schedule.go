package scheduleroutes

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/schedules"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
)

// maxSchedule bounds a definition, in bytes. It includes the input of the runs, and the bucket
// keeps several revisions of it.
const maxSchedule = 128 << 10

// readSchedule reads and validates the definition in a request, and returns it as the caller writes
// it. id is the ID of a definition that has none.
func (r *Routes) readSchedule(c *gin.Context, id string) (*schedules.Stored, error) {
	if err := request.CheckBodyKind(c.Request); err != nil {
		return nil, err
	}
	body, err := r.ReadBody(c, maxSchedule)
	if err != nil {
		return nil, err
	}
	definition, err := schedules.Parse(body)
	if err != nil {
		return nil, err
	}
	definition.ID = cmp.Or(definition.ID, id)
	ctx := c.Request.Context()
	caller, err := request.Principal(ctx)
	if err != nil {
		return nil, err
	}
	caller.Roles = nil
	stored := &schedules.Stored{Schedule: *definition, Requester: &caller, Owner: &caller, ChangedAt: time.Now().UTC()}
	stored.CreatedAt = stored.ChangedAt
	return stored, r.checkSchedule(ctx, stored)
}

// checkRuns returns nil if the runs of a schedule may begin a thread, or send input to the thread
// that the schedule names. Each firing checks it again for the actor. Without a service, the caller
// needs the same permission with its roles, because policies by role do not apply to the actor,
// which has none. checkRuns sets ThreadOwner.
func (r *Routes) checkRuns(ctx context.Context, stored *schedules.Stored, actor auth.Principal) error {
	pointer := ""
	var known *stream.Access // nil = the first run begins the thread
	if stored.ThreadID != "" {
		pointer = "/threadId"
		thread, err := access.Address(ctx, stored.ThreadID)
		if err != nil {
			return err
		}
		if known, err = r.Log.AccessOf(ctx, thread); err != nil {
			return err
		}
	}
	if known != nil {
		stored.ThreadOwner = known.Owner
	}
	actsAs := fmt.Sprintf("as the service %.100q", stored.RunAs)
	if stored.RunAs == "" {
		actsAs = "as the caller without roles; an administrator can set runAs, for a service with roles"
		caller, err := request.Principal(ctx)
		if err != nil {
			return err
		}
		if err := r.checkStart(caller, stored, actor, known); err != nil {
			return problem.Within(pointer, err)
		}
	}
	if err := r.checkStart(actor, stored, actor, known); err != nil {
		denied := *problem.Of(problem.Within(pointer, err))
		denied.Detail += ". The runs of the schedule act " + actsAs
		return &denied
	}
	return nil
}

// checkStart returns nil if a principal may do what the runs of a schedule do as the actor. known
// is the thread that the schedule names; nil = the runs begin it. The error is a
// *policy.DeniedError.
func (r *Routes) checkStart(p auth.Principal, stored *schedules.Stored, actor auth.Principal, known *stream.Access) error {
	if known == nil {
		err := r.Access.Policies.Check(p, policy.CreateThread, policy.Tenant(p.Tenant), policy.Context{})
		if err != nil || stored.ThreadID == "" {
			return err
		}
		// The first run begins the thread. The later ones send input to it.
		known = &stream.Access{Owner: &actor.Subject}
	}
	return r.Access.Policies.Check(p, policy.RunThread, policy.Thread(p.Tenant, known), policy.Context{})
}

// actorOf returns the principal as which the runs of a schedule act. Errors: *policy.DeniedError if
// the caller may not let schedules run as a service, *schedules.FieldError for an unknown service.
func (r *Routes) actorOf(ctx context.Context, stored *schedules.Stored) (auth.Principal, error) {
	if stored.RunAs == "" {
		return *stored.Requester, nil
	}
	if err := r.Access.CheckTenant(ctx, policy.RunAs); err != nil {
		return auth.Principal{}, problem.Within("/runAs", err)
	}
	actor, ok := stored.Actor(stored.Requester.Tenant, r.Principals)
	if !ok {
		return actor, &schedules.FieldError{Pointer: "/runAs", Detail: fmt.Sprintf("must be the subject of a service of this tenant in the file of PERDURE_PRINCIPALS, which does not have %.100q", stored.RunAs)}
	}
	return actor, nil
}

// checkSchedule validates the IDs of a schedule, that its agent is published, and that the caller
// and the principal as which it runs may begin its runs. An unknown agent is a 404 with the pointer
// /agent. Each firing uses the revision of the agent that is current then.
func (r *Routes) checkSchedule(ctx context.Context, definition *schedules.Stored) error {
	if err := request.CheckID("/id", definition.ID); err != nil {
		return err
	}
	if len(definition.ID) > schedules.MaxIDBytes {
		return problem.BadRequest("invalid_input", "/id", fmt.Sprintf("may have at most %d bytes", schedules.MaxIDBytes))
	}
	if err := request.CheckOptionalID("/threadId", definition.ThreadID); err != nil {
		return err
	}
	actor, err := r.actorOf(ctx, definition)
	if err != nil {
		return err
	}
	if err := r.checkRuns(ctx, definition, actor); err != nil {
		return err
	}
	current, err := r.Catalog.Current(actor.Tenant, definition.Agent)
	if err != nil {
		p := problem.Unknown("agent", definition.Agent)
		p.Pointer = "/agent"
		return p
	}
	input, err := definition.RunInput(stream.Run{})
	if err != nil {
		return err
	}
	if pointer := fileIn(input); pointer != "" {
		return &schedules.FieldError{Pointer: "/input" + pointer, Detail: "must not be the URL of a file, which is deleted unless a thread refers to it: send data, or a URL of another server"}
	}
	if pointer := schedules.Refused(current.Input, input); pointer != "" {
		return &schedules.FieldError{Pointer: "/input" + pointer, Detail: "is not accepted from clients by the agent (the key input of its definition)"}
	}
	return nil
}

// fileIn returns the pointer to the first URL of a file in the messages of an input; "" = there is none.
func fileIn(input *agui.RunAgentInput) string {
	for i, m := range input.Messages {
		for j, part := range m.Content.Parts() {
			if part.Source == nil || part.Source.Type != agui.SourceURL {
				continue
			}
			if _, ok := files.IDOf(part.Source.Value); ok {
				return fmt.Sprintf("/messages/%d/content/%d/source/value", i, j)
			}
		}
	}
	return ""
}

// createSchedule serves POST /v1/schedules. It answers 201 with the schedule, or 200 if the same
// definition exists. Another definition under the same ID is a 409 schedule_exists. Without an ID
// in the body each request creates another schedule.
func (r *Routes) createSchedule(c *gin.Context) error {
	random := "sch_" + strings.ToLower(rand.Text()[:16])
	definition, err := r.readSchedule(c, random)
	if err != nil {
		return err
	}
	err = r.createFrom(c, definition)
	if definition.ID == random {
		return problem.NotRepeatable(err, "the same request may create a second schedule, except with an id")
	}
	return err
}

// createFrom creates a schedule from its definition, and answers with it.
func (r *Routes) createFrom(c *gin.Context, definition *schedules.Stored) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	principal, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	if err := r.Access.CheckTenant(ctx, policy.CreateSchedule); err != nil {
		return err
	}
	stored, created, err := r.putSchedule(ctx, principal, definition)
	if err != nil {
		return err
	}
	// Set is repeated also for an existing definition: the request that wrote it may have died
	// before this step.
	if err := r.Scheduler.Set(ctx, principal.Tenant, stored); err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return r.answerSchedule(ctx, c, status, principal.Tenant, stored)
}

// putSchedule writes the definition of a new schedule. created is false if the same definition
// existed; stored is then the existing one. An existing definition that Temporal does not know is
// left over from a deletion or a creation that was interrupted, and is replaced.
func (r *Routes) putSchedule(ctx context.Context, principal auth.Principal, definition *schedules.Stored) (stored *schedules.Stored, created bool, err error) {
	existing, err := r.Schedules.Get(ctx, principal.Tenant, definition.ID)
	if errors.Is(err, schedules.ErrUnknown) {
		err = r.write(ctx, principal.Tenant, definition, nil)
		if !errors.Is(err, schedules.ErrExists) {
			return definition, true, err
		}
		existing, err = r.Schedules.Get(ctx, principal.Tenant, definition.ID)
	}
	if err != nil {
		return nil, false, err
	}
	if err := r.Access.CheckSchedule(ctx, existing.Owner, policy.ManageSchedule); err != nil {
		return nil, false, err
	}
	if same, err := isEqual(existing, definition); same || err != nil {
		return existing, false, err
	}
	_, err = r.Scheduler.Describe(ctx, principal.Tenant, definition.ID)
	if !errors.Is(err, schedules.ErrUnknown) {
		if err == nil {
			err = problem.New(http.StatusConflict, "schedule_exists", fmt.Sprintf("the schedule %.100q exists with another definition: change it with PUT", definition.ID))
		}
		return nil, false, err
	}
	definition.Revision = existing.Revision // replaces the leftover, unless another request does so first
	return definition, true, r.write(ctx, principal.Tenant, definition, existing)
}

// countTimeout bounds how long a write waits until the Counter has counted the schedule.
const countTimeout = time.Second

// checkMore returns a *quota.ExceededError if a tenant, or the owner of a schedule, may not have n
// more of a quota.
func (r *Routes) checkMore(ctx context.Context, tenant string, owner *auth.Principal, name quota.Name, n int64) error {
	if err := r.Meter.CheckMore(ctx, tenant, name, n); err != nil || owner == nil {
		return err
	}
	return r.Meter.CheckSubject(tenant, owner.Subject, name, n)
}

// write creates a schedule, or changes the existing one, unless the tenant or the owner has reached
// a quota. Requests of this process write one after the other, so that each is counted before the
// next is checked. Errors: those of Store.Create and Store.Change, *quota.ExceededError.
func (r *Routes) write(ctx context.Context, tenant string, definition, existing *schedules.Stored) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	perHour, before, put := definition.TimesPerHour(), int64(0), r.Schedules.Create
	if existing != nil {
		before, put = existing.TimesPerHour(), r.Schedules.Change
	} else if err := r.checkMore(ctx, tenant, definition.Owner, quota.Schedules, 1); err != nil {
		return err
	}
	if perHour > before {
		if err := r.checkMore(ctx, tenant, definition.Owner, quota.Firings, perHour-before); err != nil {
			return err
		}
	}
	if err := put(ctx, tenant, definition); err != nil {
		return err
	}
	if r.Counter != nil {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		r.Counter.Await(ctx, tenant, definition.ID, perHour)
	}
	return nil
}

// isEqual reports whether two definitions are equal, by their digests.
func isEqual(stored, definition *schedules.Stored) (bool, error) {
	storedDigest, err := stored.Digest()
	if err != nil {
		return false, err
	}
	digest, err := definition.Digest()
	return digest == storedDigest, err
}

// changeSchedule serves PUT /v1/schedules/{schedule}: it replaces the definition of a schedule and
// answers 200. The caller becomes the requester of its later runs; runs that have begun do not
// change. Errors: 400 invalid_schedule, 404 unknown_schedule, 409 schedule_changed if another
// request changes it at the same time.
func (r *Routes) changeSchedule(c *gin.Context) error {
	id := request.Segment(c, "schedule")
	definition, err := r.readSchedule(c, id)
	if err != nil {
		return err
	}
	if definition.ID != id {
		return problem.BadRequest("invalid_schedule", "/id", "must be the id in the path")
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	principal, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	stored, err := r.replaceSchedule(ctx, principal, definition)
	if err != nil {
		return err
	}
	// The definition is written. If this fails, Temporal fires the old times until the request is
	// repeated.
	if err := r.Scheduler.Change(ctx, principal.Tenant, stored); err != nil {
		return err
	}
	return r.answerSchedule(ctx, c, http.StatusOK, principal.Tenant, stored)
}

// replaceSchedule writes the new definition of a schedule. The same definition again is not
// written, and keeps its requester. The thread of a schedule cannot be changed.
func (r *Routes) replaceSchedule(ctx context.Context, principal auth.Principal, definition *schedules.Stored) (*schedules.Stored, error) {
	existing, err := r.Schedules.Get(ctx, principal.Tenant, definition.ID)
	if err != nil {
		return nil, err
	}
	if err := r.Access.CheckSchedule(ctx, existing.Owner, policy.ManageSchedule); err != nil {
		return nil, err
	}
	// The run of a firing is derived from the definition, so earlier firings would point to the
	// wrong thread.
	if existing.ThreadID != definition.ThreadID {
		return nil, problem.BadRequest("invalid_schedule", "/threadId", "must not change: create another schedule")
	}
	if same, err := isEqual(existing, definition); same || err != nil {
		return existing, err
	}
	definition.Owner, definition.CreatedAt, definition.Revision = existing.Owner, existing.CreatedAt, existing.Revision
	return definition, r.write(ctx, principal.Tenant, definition, existing)
}

// deleteSchedule serves DELETE /v1/schedules/{schedule}. It answers 204. Runs that have begun
// continue.
func (r *Routes) deleteSchedule(c *gin.Context) error {
	return r.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		// Temporal first: it must not fire a schedule without a definition.
		err := r.Scheduler.Delete(ctx, tenant, id)
		if err != nil && !errors.Is(err, schedules.ErrUnknown) {
			return err
		}
		return r.Schedules.Delete(ctx, tenant, id)
	})
}

// triggerSchedule serves POST /v1/schedules/{schedule}/trigger: it fires a schedule now, also a
// paused one, and answers 204. overlap replaces the schedule's policy for this firing. The request
// is not idempotent: after a 503 the schedule may fire twice.
func (r *Routes) triggerSchedule(c *gin.Context) error {
	var body struct {
		Overlap string `json:"overlap"`
	}
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	return r.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		if err := r.Rates.TakeTrigger(tenant); err != nil {
			return err
		}
		err := r.Scheduler.Trigger(ctx, tenant, id, body.Overlap)
		return problem.NotRepeatable(err, "the same request may fire the schedule twice, so check its recent firings first")
	})
}

// scheduleCommand returns the handler of a command to the schedule in the path, such as POST
// …/pause. It answers 204.
func (r *Routes) scheduleCommand(do func(ctx context.Context, tenant, id string) error) func(*gin.Context) error {
	return func(c *gin.Context) error { return r.withSchedule(c, do) }
}

// withSchedule calls do for the schedule in the path, and answers 204. A schedule that the tenant
// does not have is a 404, before do is called.
func (r *Routes) withSchedule(c *gin.Context, do func(ctx context.Context, tenant, id string) error) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	principal, err := request.Principal(ctx)
	if err != nil {
		return err
	}
	id := request.Segment(c, "schedule")
	stored, err := r.Schedules.Get(ctx, principal.Tenant, id)
	if err != nil {
		return err
	}
	if err := r.Access.CheckSchedule(ctx, stored.Owner, policy.ManageSchedule); err != nil {
		return err
	}
	if err := do(ctx, principal.Tenant, id); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}
