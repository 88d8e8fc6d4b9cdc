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

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/control/schedules"
)

// maxSchedule bounds a definition, in bytes. It includes the input of the runs, and the bucket
// keeps several revisions of it.
const maxSchedule = 128 << 10

// readSchedule reads and validates the definition in a request. id is the ID of a definition that
// has none.
func (s *Routes) readSchedule(c *gin.Context, id string) (*schedules.Schedule, error) {
	if err := request.CheckBodyKind(c.Request); err != nil {
		return nil, err
	}
	body, err := s.ReadBody(c, maxSchedule)
	if err != nil {
		return nil, err
	}
	definition, err := schedules.Parse(body)
	if err != nil {
		return nil, err
	}
	definition.ID = cmp.Or(definition.ID, id)
	return definition, s.checkSchedule(definition)
}

// checkSchedule validates the IDs of a schedule, and that its agent is published. An unknown agent
// is a 404 with the pointer /agent. Each firing uses the revision of the agent that is current
// then.
func (s *Routes) checkSchedule(definition *schedules.Schedule) error {
	if err := request.CheckID("/id", definition.ID); err != nil {
		return err
	}
	if len(definition.ID) > schedules.MaxIDBytes {
		return problem.BadRequest("invalid_input", "/id", fmt.Sprintf("may have at most %d bytes", schedules.MaxIDBytes))
	}
	if err := request.CheckOptionalID("/threadId", definition.ThreadID); err != nil {
		return err
	}
	if _, err := s.Catalog.Current(definition.Agent); err != nil {
		p := problem.Unknown("agent", definition.Agent)
		p.Pointer = "/agent"
		return p
	}
	return nil
}

// createSchedule serves POST /v1/schedules. It answers 201 with the schedule, or 200 if the same
// definition exists. Another definition under the same ID is a 409 schedule_exists. Without an ID
// in the body each request creates another schedule.
func (s *Routes) createSchedule(c *gin.Context) {
	random := "sch_" + strings.ToLower(rand.Text()[:16])
	definition, err := s.readSchedule(c, random)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Stored
	var created bool
	if err == nil {
		k, created, err = s.keepSchedule(ctx, who, definition)
	}
	if err == nil {
		// Set is repeated also for an existing definition: the request that wrote it may have died
		// before this step.
		err = s.Clock.Set(ctx, who.Tenant, k)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	if err == nil {
		err = s.answerSchedule(ctx, c, status, who.Tenant, k)
	}
	if definition.ID == random {
		err = problem.NotRepeatable(err, "the same request may create a second schedule, except with an id")
	}
	if err != nil {
		s.Refuse(c, err)
	}
}

// keepSchedule writes the definition of a new schedule. created is false if the same definition
// existed; k is then the existing one. An existing definition that Temporal does not know is left
// over from a deletion or a creation that was interrupted, and is replaced.
func (s *Routes) keepSchedule(ctx context.Context, who auth.Principal, definition *schedules.Schedule) (k *schedules.Stored, created bool, err error) {
	now := time.Now().UTC()
	k = &schedules.Stored{Schedule: *definition, Requester: &who, CreatedAt: now, ChangedAt: now}
	err = s.Schedules.Create(ctx, who.Tenant, k)
	if !errors.Is(err, schedules.ErrExists) {
		return k, true, err
	}
	there, err := s.Schedules.Get(ctx, who.Tenant, definition.ID)
	if err != nil {
		return nil, false, err
	}
	if same, err := isEqual(there, definition); same || err != nil {
		return there, false, err
	}
	_, err = s.Clock.Describe(ctx, who.Tenant, definition.ID)
	if !errors.Is(err, schedules.ErrUnknown) {
		if err == nil {
			err = problem.New(http.StatusConflict, "schedule_exists", fmt.Sprintf("the schedule %.100q exists with another definition: change it with PUT", definition.ID))
		}
		return nil, false, err
	}
	k.Revision = there.Revision // replaces the leftover, unless another request does so first
	return k, true, s.Schedules.Change(ctx, who.Tenant, k)
}

// isEqual reports whether two definitions are equal, by their digests.
func isEqual(there *schedules.Stored, definition *schedules.Schedule) (bool, error) {
	before, err := there.Digest()
	if err != nil {
		return false, err
	}
	now, err := definition.Digest()
	return before == now, err
}

// changeSchedule serves PUT /v1/schedules/{schedule}: it replaces the definition of a schedule and
// answers 200. The caller becomes the requester of its later runs; runs that have begun do not
// change. Errors: 400 invalid_schedule, 404 unknown_schedule, 409 schedule_changed if another
// request changes it at the same time.
func (s *Routes) changeSchedule(c *gin.Context) {
	id := request.Segment(c, "schedule")
	definition, err := s.readSchedule(c, id)
	if err == nil && definition.ID != id {
		err = problem.BadRequest("invalid_schedule", "/id", "must be the id in the path")
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Stored
	if err == nil {
		k, err = s.rewriteSchedule(ctx, who, definition)
	}
	if err == nil {
		// The definition is written. If this fails, Temporal fires the old times until the request
		// is repeated.
		err = s.Clock.Change(ctx, who.Tenant, k)
	}
	if err == nil {
		err = s.answerSchedule(ctx, c, http.StatusOK, who.Tenant, k)
	}
	if err != nil {
		s.Refuse(c, err)
	}
}

// rewriteSchedule writes the new definition of a schedule. The same definition again is not
// written, and keeps its requester. The thread of a schedule cannot be changed.
func (s *Routes) rewriteSchedule(ctx context.Context, who auth.Principal, definition *schedules.Schedule) (*schedules.Stored, error) {
	there, err := s.Schedules.Get(ctx, who.Tenant, definition.ID)
	if err != nil {
		return nil, err
	}
	// The run of a firing is derived from the definition, so earlier firings would point to the
	// wrong thread.
	if there.ThreadID != definition.ThreadID {
		return nil, problem.BadRequest("invalid_schedule", "/threadId", "must not change: create another schedule")
	}
	if same, err := isEqual(there, definition); same || err != nil {
		return there, err
	}
	k := &schedules.Stored{Schedule: *definition, Requester: &who, CreatedAt: there.CreatedAt, ChangedAt: time.Now().UTC(), Revision: there.Revision}
	return k, s.Schedules.Change(ctx, who.Tenant, k)
}

// deleteSchedule serves DELETE /v1/schedules/{schedule}. It answers 204. Runs that have begun
// continue.
func (s *Routes) deleteSchedule(c *gin.Context) {
	s.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		// Temporal first: it must not fire a schedule without a definition.
		err := s.Clock.Delete(ctx, tenant, id)
		if err != nil && !errors.Is(err, schedules.ErrUnknown) {
			return err
		}
		return s.Schedules.Delete(ctx, tenant, id)
	})
}

// triggerSchedule serves POST /v1/schedules/{schedule}/trigger: it fires a schedule now, also a
// paused one, and answers 204. overlap replaces the schedule's policy for this firing. The request
// is not idempotent: after a 503 the schedule may fire twice.
func (s *Routes) triggerSchedule(c *gin.Context) {
	var body struct {
		Overlap string `json:"overlap"`
	}
	if err := s.ReadJSON(c, &body); err != nil {
		s.Refuse(c, err)
		return
	}
	s.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		err := s.Clock.Trigger(ctx, tenant, id, body.Overlap)
		return problem.NotRepeatable(err, "the same request may fire the schedule twice, so check its recent firings first")
	})
}

// onSchedule returns the handler of a command to the schedule in the path, such as POST …/pause. It
// answers 204.
func (s *Routes) onSchedule(do func(ctx context.Context, tenant, id string) error) gin.HandlerFunc {
	return func(c *gin.Context) { s.withSchedule(c, do) }
}

// withSchedule calls do for the schedule in the path, and answers 204. A schedule that the tenant
// does not have is a 404, before do is called.
func (s *Routes) withSchedule(c *gin.Context, do func(ctx context.Context, tenant, id string) error) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	id := request.Segment(c, "schedule")
	if err == nil {
		_, err = s.Schedules.Get(ctx, who.Tenant, id)
	}
	if err == nil {
		err = do(ctx, who.Tenant, id)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.Status(http.StatusNoContent)
}
