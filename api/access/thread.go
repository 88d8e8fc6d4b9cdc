package access

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/index/threads"
	"github.com/perdure/perdure/stream"
)

// Thread returns the thread with an ID in the caller's tenant, if the caller may do something with
// it. It validates the ID. Errors: those of Check, 400 invalid_input.
func (g *Guard) Thread(ctx context.Context, id string, action policy.Action) (stream.Thread, error) {
	thread, err := Address(ctx, id)
	if err != nil {
		return thread, err
	}
	return thread, g.Check(ctx, thread, action)
}

// ThreadOf is Thread for the thread in the path, {thread}.
func (g *Guard) ThreadOf(c *gin.Context, action policy.Action) (stream.Thread, error) {
	return g.Thread(c.Request.Context(), request.Segment(c, "thread"), action)
}

// Address returns the thread with an ID in the caller's tenant. It validates the ID, but checks
// neither the access nor whether the thread exists: the caller of Address does.
func Address(ctx context.Context, id string) (stream.Thread, error) {
	p, err := request.Principal(ctx)
	if err != nil {
		return stream.Thread{}, err
	}
	return stream.Thread{Tenant: p.Tenant, ID: id}, request.CheckID("/threadId", id)
}

// AddressRun is Address for a run.
func AddressRun(ctx context.Context, threadID, id string) (stream.Run, error) {
	thread, err := Address(ctx, threadID)
	if err != nil {
		return stream.Run{}, err
	}
	run := stream.Run{Thread: thread, ID: id}
	return run, request.CheckRun(run)
}

// Reader returns a check that the caller may read the thread now. A view calls it each time before
// it shows events (view.View.Admit). As long as the owner and the shares stay the same, a call only
// looks at the index in memory. Only one goroutine may use the check.
//
// A reader may wait for a thread that does not exist, so Reader fails only if the thread exists and
// the caller may not read it.
func (g *Guard) Reader(ctx context.Context, thread stream.Thread) (check func(context.Context) error, err error) {
	check = g.reader(thread, false)
	if err = check(ctx); IsUnknown(err) {
		err = nil
	}
	return check, err
}

// AdmittedReader is Reader for a caller whose input has begun a run of the thread.
func (g *Guard) AdmittedReader(thread stream.Thread) (check func(context.Context) error) {
	return g.reader(thread, true)
}

// reader returns the check of a reader. isAdmitted tells that the caller may read the thread as long
// as the index does not have the thread.
func (g *Guard) reader(thread stream.Thread, isAdmitted bool) func(context.Context) error {
	var last threads.Access // of the last check, unless the log had to be asked
	wasListed := false
	return func(ctx context.Context) error {
		now, isListed := threads.Access{}, false
		if g.Threads != nil {
			now, isListed = g.Threads.AccessTo(thread)
		}
		// The owner of a thread that is not listed yet stays the same, and it has no shares.
		if isAdmitted && isListed == wasListed && (!isListed || now == last) {
			return nil
		}
		err := g.Check(ctx, thread, policy.ReadThread)
		isAdmitted, wasListed, last = err == nil, isListed, now
		return err
	}
}

// MayRead returns a check for lists: whether the caller may read a thread with an owner and shares.
func (g *Guard) MayRead(ctx context.Context) func(stream.Access) bool {
	p := request.Caller(ctx)
	return func(a stream.Access) bool {
		return g.Policies.Check(p, policy.ReadThread, policy.Thread(p.Tenant, &a), policy.Context{}) == nil
	}
}

// IsUnknown reports whether an error is a 404, such as that of a check for a thread that does not
// exist.
func IsUnknown(err error) bool {
	return err != nil && problem.Of(err).Status == http.StatusNotFound
}
