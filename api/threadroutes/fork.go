package threadroutes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// forkResult is the answer to a fork: the new thread, and its origin.
type forkResult struct {
	ThreadID   string `json:"threadId"`
	ForkedFrom origin `json:"forkedFrom"`
}

// forkRun serves POST /v1/threads/{thread}/runs/{run}/fork: it creates a thread that begins with
// the conversation and the state at the end of a run, or with at, a cursor, after a step of it, and
// answers 201. The same request with the same threadId returns the same fork. Without threadId each
// request creates another thread.
//
// Errors: 404 unknown_run, 409 run_active or thread_exists, 422 not_a_fork_point, 429 quota_exceeded,
// and those of cursors.
func (r *Routes) forkRun(c *gin.Context) error {
	from, err := access.AddressRun(c.Request.Context(), request.Segment(c, "thread"), request.Segment(c, "run"))
	if err != nil {
		return err
	}
	var body struct {
		ThreadID string `json:"threadId"`
		At       string `json:"at"`
	}
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	if err := request.CheckOptionalID("/threadId", body.ThreadID); err != nil {
		return err
	}
	// The ID is random, so a client that repeats the request after a 503 gets a second fork. A
	// client avoids that by choosing the ID.
	isChosen := body.ThreadID != ""
	if !isChosen {
		body.ThreadID = "thread_" + strings.ToLower(rand.Text())
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	at, err := r.Fork(ctx, from, body.At, stream.Thread{Tenant: from.Tenant, ID: body.ThreadID})
	if !isChosen {
		err = problem.NotRepeatable(err, "the same request may create a second fork, except with a threadId")
	}
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusCreated, forkResult{body.ThreadID, origin{from.Thread.ID, from.ID, at}})
}

// Fork creates the thread to as a fork of a run: at a cursor, "" = at the end of its last segment. to
// must be of the same tenant. The caller of the request becomes its owner, and must be allowed to
// read the thread of the run. The result is the cursor of the step, "" = the run's end. Fork may be
// repeated. The errors are those of forkRun.
func (r *Routes) Fork(ctx context.Context, from stream.Run, at string, to stream.Thread) (cursor string, err error) {
	if from, err = r.readableRun(ctx, from); err != nil {
		return "", err
	}
	if err := r.access.CheckTenant(ctx, policy.CreateThread); err != nil {
		return "", err
	}
	last, err := r.finder.Log.LastOf(ctx, to)
	if err != nil {
		return "", err
	}
	var point *snapshot.ForkPoint
	if at != "" {
		if from, point, err = r.forkPointAt(ctx, from, at); err != nil {
			return "", err
		}
		if point.Kind != snapshot.ForkEnd {
			cursor = r.finder.Log.CursorOf(point.Position).String()
		}
	}
	if last == 0 { // otherwise a fork that exists is repeated
		err = r.prepareFork(ctx, from, point, to)
	}
	if err == nil {
		err = r.finder.Snapshots.Fork(ctx, from, point, to, request.Requester(ctx))
	}
	switch {
	case errors.Is(err, stream.ErrRunActive):
		p := problem.New(http.StatusConflict, "run_active", fmt.Sprintf("the run %.100q has not ended: fork an ended run, or at one of its fork points", from.Shown()))
		p.ActiveRun = from.Shown()
		return "", p
	case errors.Is(err, stream.ErrThreadExists):
		return "", problem.New(http.StatusConflict, "thread_exists", fmt.Sprintf("the thread %.100q exists already", to.ID))
	case err != nil:
		return "", err
	}
	return cursor, nil
}

// prepareFork refuses a fork if the tenant has reached a quota, and adds it to the threads of the files of its
// messages. It does so before the fork begins, because a request whose thread exists does not come here again. If
// the fork does not begin, a sweep ends the references.
func (r *Routes) prepareFork(ctx context.Context, from stream.Run, at *snapshot.ForkPoint, fork stream.Thread) error {
	if err := r.meter.Check(ctx, fork.Tenant, quota.LogBytes, quota.Threads); err != nil || r.files == nil {
		return err
	}
	base, err := r.finder.Snapshots.ForkBase(ctx, from, at)
	if err != nil {
		return err
	}
	return r.files.Share(ctx, from.Thread, fork, func(yield func(agui.Message) bool) {
		for _, e := range base.Entries {
			if !yield(e.Message) {
				return
			}
		}
	})
}
