package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// steered is the answer to a steered message. What the run makes of the message follows the cursor in the thread's events.
type steered struct {
	Cursor   string `json:"cursor"`
	RunID    string `json:"runId"`
	Repeated bool   `json:"repeated,omitempty"`
}

// steerThread tells the active run of a thread a message, which the next model call gets. It answers when the run has taken the message. The same
// message again is taken once.
func (s *Server) steerThread(c *gin.Context) {
	thread, err := request.ThreadOf(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	var body struct {
		Message json.RawMessage `json:"message"`
	}
	if err := s.ReadJSON(c, &body); err != nil {
		s.Refuse(c, err)
		return
	}
	answer, err := s.steer(c.Request.Context(), thread, body.Message)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	c.JSON(http.StatusAccepted, answer)
}

func (s *Server) steer(ctx context.Context, thread stream.Thread, raw json.RawMessage) (steered, error) {
	message, err := decodeSteer(raw)
	if err != nil {
		return steered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, request.Patience)
	defer cancel()
	now, err := s.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return steered{}, err
	}
	run, err := s.activeRun(ctx, thread, now)
	if err != nil {
		return steered{}, err
	}
	accepted := stream.Acceptance{Tail: []stream.Said{{ID: message.ID, Message: message}}}
	if !now.CanSteer(accepted) {
		return steered{}, problem.BadRequest("invalid_input", "/message/id", "is the ID of another message of the thread")
	}
	p, err := s.Log.ProposeInput(ctx, run, message.Digest(), &stream.Input{Accepted: accepted, Requester: request.Requester(ctx)})
	if err != nil {
		return steered{}, err
	}
	return s.tellRun(ctx, run, p)
}

// activeRun is the active run of a thread. A run that Temporal has started may not be in the log yet: then its workflow names it, by refusing an
// offer.
func (s *Server) activeRun(ctx context.Context, thread stream.Thread, now *snapshot.Snapshot) (stream.Run, error) {
	if now.RunID != "" && !now.Sealed {
		return stream.Run{Thread: thread, ID: now.RunID}, nil
	}
	_, err := s.dispatch.Offer(ctx, thread, runs.Submit{}, "")
	if active, busy := dispatch.BusyWith(err); busy {
		return stream.Run{Thread: thread, ID: active}, nil
	}
	var gone *serviceerror.NotFound
	var waits *temporal.ApplicationError // the thread has only open interrupts
	if err == nil || errors.As(err, &gone) || errors.As(err, &waits) {
		return stream.Run{}, errNotActive(thread)
	}
	return stream.Run{}, fmt.Errorf("api: ask for the active run: %w", err)
}

// tellRun makes the run's workflow take a proposal.
func (s *Server) tellRun(ctx context.Context, run stream.Run, p stream.Proposal) (steered, error) {
	var taken runs.Steered
	err := s.update(ctx, run.Thread, runs.UpdateSteer, runs.Steer{RunID: run.ID, Input: p.Seq}, &taken)
	cursor := s.Log.CursorAt(p.Seq)
	return steered{Cursor: cursor.String(), RunID: run.ID, Repeated: taken.Repeated}, err
}

// update sends an update to the thread's workflow, and waits for its result.
func (s *Server) update(ctx context.Context, thread stream.Thread, name string, arg, answer any) error {
	err := s.dispatch.Update(ctx, thread, "", name, arg, answer)
	var app *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &app) && app.Type() == runs.ErrorTooMuchSteering:
		return problem.New(http.StatusTooManyRequests, "too_much_steering", "the run has been told as much as it can take")
	case errors.As(err, &gone), errors.As(err, &app):
		return errNotActive(thread)
	case err != nil:
		return fmt.Errorf("api: %s: %w", name, err)
	}
	return nil
}

// codeNotActive is the code of the problem that a thread has no active run.
const codeNotActive = "not_active"

func errNotActive(t stream.Thread) *problem.Problem {
	return problem.New(http.StatusConflict, codeNotActive, fmt.Sprintf("no run of the thread %.200q is active", t.ID))
}

// decodeSteer decodes the message like one of an input, with the same checks.
func decodeSteer(raw json.RawMessage) (*agui.Message, error) {
	if len(raw) == 0 {
		return nil, problem.BadRequest("invalid_input", "/message", "is missing")
	}
	in, err := agui.DecodeInput([]byte(`{"threadId":"-","runId":"-","messages":[` + string(raw) + `]}`))
	var wrong *agui.DecodeError
	if errors.As(err, &wrong) {
		return nil, problem.BadRequest("invalid_input", strings.Replace(wrong.Pointer, "/messages/0", "/message", 1), wrong.Detail)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(in.Messages) != 1 || in.Messages[0].Role != agui.RoleUser:
		return nil, problem.BadRequest("invalid_input", "/message/role", `must be "user"`)
	}
	return &in.Messages[0], request.CheckMessageIDs("/message", in.Messages[0])
}
