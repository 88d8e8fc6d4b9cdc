package threadroutes

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/stream"
)

// describedThread is the answer to a change of the title or the metadata of a thread.
type describedThread struct {
	ThreadID string            `json:"threadId"`
	Title    string            `json:"title,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// putTitle serves PUT /v1/threads/{thread}/title: it gives a thread a title, and answers 200. An
// empty title restores the one that is made of the first message. The last of two concurrent
// requests wins.
//
// Errors: 400 invalid_input, 403, 404 unknown_thread, 409 not_begun before the thread's first run.
func (r *Routes) putTitle(c *gin.Context) error {
	return r.describe(c, func(ctx context.Context, thread stream.Thread) (*stream.Description, error) {
		var body struct {
			Title *string `json:"title"`
		}
		if err := r.ReadJSON(c, &body); err != nil {
			return nil, err
		}
		if body.Title == nil {
			return nil, problem.BadRequest("invalid_input", "/title", "is required; an empty title restores that of the first message")
		}
		if !stream.IsTitle(*body.Title) {
			detail := fmt.Sprintf("must be one line of at most %d characters, without control characters, and without spaces at its ends", stream.MaxTitle)
			return nil, problem.BadRequest("invalid_input", "/title", detail)
		}
		return r.finder.Log.SetTitle(ctx, thread, *body.Title)
	})
}

// putMetadata serves PUT /v1/threads/{thread}/metadata: it replaces the metadata of a thread, and
// answers 200. The last of two concurrent requests wins. The errors are those of putTitle.
func (r *Routes) putMetadata(c *gin.Context) error {
	return r.describe(c, func(ctx context.Context, thread stream.Thread) (*stream.Description, error) {
		var body struct {
			Metadata map[string]string `json:"metadata"`
		}
		if err := r.ReadJSON(c, &body); err != nil {
			return nil, err
		}
		if body.Metadata == nil {
			return nil, problem.BadRequest("invalid_input", "/metadata", "is required; an empty object removes all metadata")
		}
		if err := request.CheckMetadata("/metadata", body.Metadata); err != nil {
			return nil, err
		}
		return r.finder.Log.SetMetadata(ctx, thread, body.Metadata)
	})
}

// describe changes the description of the thread in the path, if the caller may send input to the
// thread, and writes the description.
func (r *Routes) describe(c *gin.Context, change func(context.Context, stream.Thread) (*stream.Description, error)) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	thread, err := r.access.ThreadOf(c, policy.RunThread)
	if err != nil {
		return err
	}
	d, err := change(ctx, thread)
	if errors.Is(err, stream.ErrNotListed) {
		return problem.New(http.StatusConflict, "not_begun", "the first run of the thread has not begun: describe the thread afterwards")
	}
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusOK, describedThread{thread.ID, d.Title(), d.Metadata})
}
