package threadroutes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/stream"
)

// forked is the answer to a fork.
type forked struct {
	ThreadID   string `json:"threadId"`
	ForkedFrom origin `json:"forkedFrom"`
}

// forkRun begins a thread as a fork of another one at the end of a run. The same request again is
// the same fork.
func (s *Routes) forkRun(c *gin.Context) {
	from, err := request.RunOf(c)
	var body struct {
		ThreadID string `json:"threadId"`
	}
	if err == nil {
		err = s.ReadJSON(c, &body)
	}
	if err == nil {
		err = request.CheckOptionalID("/threadId", body.ThreadID)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if body.ThreadID == "" {
		body.ThreadID = "thread_" + strings.ToLower(rand.Text())
	}
	ctx, end := context.WithTimeout(c.Request.Context(), request.Patience)
	defer end()
	if err := s.Fork(ctx, from, stream.Thread{Tenant: from.Tenant, ID: body.ThreadID}); err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusCreated, forked{body.ThreadID, origin{from.Thread.ID, from.ID}})
}

// Fork forks the last segment of a run.
func (s *Routes) Fork(ctx context.Context, from stream.Run, to stream.Thread) error {
	from, err := s.find.LastSegment(ctx, from)
	if err != nil {
		return err
	}
	if err := s.find.CheckRun(ctx, from, nil); err != nil {
		return err
	}
	err = s.find.Snapshots.Fork(ctx, from, to)
	switch {
	case errors.Is(err, stream.ErrRunActive):
		p := problem.New(http.StatusConflict, "run_active", fmt.Sprintf("the run %.100q has not ended: fork it when it has, or an earlier one", from.Shown()))
		p.ActiveRun = from.Shown()
		return p
	case errors.Is(err, stream.ErrThreadExists):
		return problem.New(http.StatusConflict, "thread_exists", fmt.Sprintf("the thread %.100q exists already", to.ID))
	}
	return err
}
