package scheduleroutes

import (
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

// maxSchedule bounds a definition, in bytes.
const maxSchedule = 128 << 10

// readSchedule reads the definition in a request; id is that of the path, or empty.
func (s *Routes) readSchedule(c *gin.Context, id string) (*schedules.Schedule, error) {
	if err := request.CheckBodyKind(c.Request); err != nil {
		return nil, err
	}
	body, err := s.ReadBody(c, maxSchedule)
	if err != nil {
		return nil, err
	}
	said, err := schedules.Parse(body)
	switch {
	case err != nil:
		return nil, err
	case said.ID == "" && id == "":
		said.ID = "sch_" + strings.ToLower(rand.Text()[:16])
	case said.ID == "":
		said.ID = id
	case id != "" && said.ID != id:
		return nil, problem.BadRequest("invalid_schedule", "/id", "must be the id in the path")
	}
	return said, s.checkSchedule(said)
}

// checkSchedule checks the agent and the thread of a schedule.
func (s *Routes) checkSchedule(said *schedules.Schedule) error {
	if err := request.CheckID("/id", said.ID); err != nil {
		return err
	}
	if len(said.ID) > schedules.MaxIDBytes {
		return problem.BadRequest("invalid_input", "/id", fmt.Sprintf("may have at most %d bytes", schedules.MaxIDBytes))
	}
	if err := request.CheckOptionalID("/threadId", said.ThreadID); err != nil {
		return err
	}
	if _, err := s.Catalog.Current(said.Agent); err != nil {
		p := problem.Unknown("agent", said.Agent)
		p.Pointer = "/agent"
		return p
	}
	return nil
}

// createSchedule creates a schedule. The same definition again is the same schedule.
func (s *Routes) createSchedule(c *gin.Context) {
	said, err := s.readSchedule(c, "")
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Kept
	var created bool
	if err == nil {
		k, created, err = s.keepSchedule(ctx, who, said)
	}
	if err == nil {
		err = s.Clock.Set(ctx, who.Tenant, k)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	s.answerSchedule(ctx, c, status, who.Tenant, k)
}

// keepSchedule writes the definition of a new schedule. created is false if the same definition
// existed.
func (s *Routes) keepSchedule(ctx context.Context, who auth.Principal, said *schedules.Schedule) (k *schedules.Kept, created bool, err error) {
	now := time.Now().UTC()
	k = &schedules.Kept{Schedule: *said, Requester: &who, CreatedAt: now, ChangedAt: now}
	err = s.Schedules.Create(ctx, who.Tenant, k)
	if !errors.Is(err, schedules.ErrExists) {
		return k, true, err
	}
	there, err := s.Schedules.Get(ctx, who.Tenant, said.ID)
	if err != nil {
		return nil, false, err
	}
	if same, err := saysTheSame(there, said); same || err != nil {
		return there, false, err
	}
	_, err = s.Clock.Describe(ctx, who.Tenant, said.ID)
	if !errors.Is(err, schedules.ErrUnknown) {
		if err == nil {
			err = problem.New(http.StatusConflict, "schedule_exists", fmt.Sprintf("the schedule %.100q says something else; PUT changes it", said.ID))
		}
		return nil, false, err
	}
	k.Revision = there.Revision // of a definition that was deleted, or not completed
	return k, true, s.Schedules.Change(ctx, who.Tenant, k)
}

func saysTheSame(there *schedules.Kept, said *schedules.Schedule) (bool, error) {
	before, err := there.Digest()
	if err != nil {
		return false, err
	}
	now, err := said.Digest()
	return before == now, err
}

// changeSchedule replaces the definition of a schedule. The caller becomes the requester of its
// later runs.
func (s *Routes) changeSchedule(c *gin.Context) {
	said, err := s.readSchedule(c, request.Segment(c, "schedule"))
	if err != nil {
		s.Refuse(c, err)
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	who, err := request.Principal(ctx)
	var k *schedules.Kept
	if err == nil {
		k, err = s.rewriteSchedule(ctx, who, said)
	}
	if err == nil {
		err = s.Clock.Change(ctx, who.Tenant, k)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	s.answerSchedule(ctx, c, http.StatusOK, who.Tenant, k)
}

func (s *Routes) rewriteSchedule(ctx context.Context, who auth.Principal, said *schedules.Schedule) (*schedules.Kept, error) {
	there, err := s.Schedules.Get(ctx, who.Tenant, said.ID)
	if err != nil {
		return nil, err
	}
	if there.ThreadID != said.ThreadID {
		return nil, problem.BadRequest("invalid_schedule", "/threadId", "cannot be changed: make another schedule")
	}
	if same, err := saysTheSame(there, said); same || err != nil {
		return there, err
	}
	k := &schedules.Kept{Schedule: *said, Requester: &who, CreatedAt: there.CreatedAt, ChangedAt: time.Now().UTC(), Revision: there.Revision}
	return k, s.Schedules.Change(ctx, who.Tenant, k)
}

// deleteSchedule deletes a schedule. Its active runs continue.
func (s *Routes) deleteSchedule(c *gin.Context) {
	s.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		err := s.Clock.Delete(ctx, tenant, id)
		if err != nil && !errors.Is(err, schedules.ErrUnknown) {
			return err
		}
		return s.Schedules.Delete(ctx, tenant, id)
	})
}

// triggerSchedule fires a schedule now.
func (s *Routes) triggerSchedule(c *gin.Context) {
	var body struct {
		Overlap string `json:"overlap"`
	}
	if err := s.ReadJSON(c, &body); err != nil {
		s.Refuse(c, err)
		return
	}
	s.withSchedule(c, func(ctx context.Context, tenant, id string) error {
		return s.Clock.Trigger(ctx, tenant, id, body.Overlap)
	})
}

// onSchedule returns the handler of a command to a schedule.
func (s *Routes) onSchedule(do func(ctx context.Context, tenant, id string) error) gin.HandlerFunc {
	return func(c *gin.Context) { s.withSchedule(c, do) }
}

// withSchedule carries out a command to the schedule in the path.
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
