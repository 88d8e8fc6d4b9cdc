package threadroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// maxShares bounds the shares of a thread: every node holds those of all threads.
const maxShares = 100

// sharedThread is who may use a thread.
type sharedThread struct {
	// Owner is the subject that began the thread; "" = an anonymous caller, or unknown.
	Owner  string         `json:"owner,omitempty"`
	Shares []stream.Share `json:"shares"`
}

// sharedThreadOf returns the answer about a thread.
func sharedThreadOf(a *stream.Access) sharedThread {
	out := sharedThread{Shares: a.Shares}
	if a.Owner != nil {
		out.Owner = *a.Owner
	}
	if out.Shares == nil {
		out.Shares = []stream.Share{}
	}
	return out
}

// showShares serves GET /v1/threads/{thread}/shares: the owner of a thread, and with whom it is
// shared. Every reader of the thread sees them. An unknown thread is a 404.
func (r *Routes) showShares(c *gin.Context) error {
	ctx := c.Request.Context()
	thread, err := r.access.ThreadOf(c, policy.ReadThread)
	if err != nil {
		return err
	}
	known, err := r.finder.Log.AccessOf(ctx, thread)
	if err != nil {
		return err
	}
	if known == nil {
		return problem.NoThread(thread)
	}
	return request.WriteJSON(c, http.StatusOK, sharedThreadOf(known))
}

// putShares serves PUT /v1/threads/{thread}/shares: it replaces the shares of a thread, and answers
// 200 with them. Open streams of readers that lose their access end before the next event. The last
// of two concurrent requests wins.
//
// Errors: 400 invalid_input, 403, 404 unknown_thread, 409 not_begun before the thread's first run.
func (r *Routes) putShares(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	thread, err := r.access.ThreadOf(c, policy.ManageThread)
	if err != nil {
		return err
	}
	var body struct {
		Shares []stream.Share `json:"shares"`
	}
	if err := r.ReadJSON(c, &body); err != nil {
		return err
	}
	if body.Shares == nil {
		return problem.BadRequest("invalid_input", "/shares", "is required; an empty list makes the thread private")
	}
	if err := checkShares(body.Shares); err != nil {
		return err
	}
	shared, err := r.finder.Log.Share(ctx, thread, body.Shares)
	if errors.Is(err, stream.ErrNotListed) {
		return problem.New(http.StatusConflict, "not_begun", "the first run of the thread has not begun: share the thread afterwards")
	}
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, sharedThreadOf(shared))
}

// checkShares returns a 400 for the first invalid share.
func checkShares(shares []stream.Share) error {
	if len(shares) > maxShares {
		return problem.BadRequest("invalid_input", "/shares", fmt.Sprintf("may have at most %d entries", maxShares))
	}
	for i, share := range shares {
		pointer := fmt.Sprintf("/shares/%d", i)
		grantees := 0
		for _, isSet := range []bool{share.Subject != "", share.Role != "", share.Everyone} {
			if isSet {
				grantees++
			}
		}
		if grantees != 1 {
			return problem.BadRequest("invalid_input", pointer, "must have exactly one of subject, role and everyone")
		}
		if !slices.Contains(stream.AccessLevels, share.Access) {
			return problem.BadRequest("invalid_input", pointer+"/access", "must be read, run, decide or manage")
		}
		// A name that no principal can have would be a mistake.
		if err := (auth.Principal{Tenant: auth.TenantDefault, Subject: share.Subject, Roles: []string{share.Role}}).Check(); err != nil {
			return problem.BadRequest("invalid_input", pointer, "must name a subject or a role that a caller can have")
		}
		if slices.Contains(shares[:i], share) {
			return problem.BadRequest("invalid_input", pointer, "is there twice")
		}
	}
	return nil
}
