package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/attachments"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// Steered is the acknowledgement of a message to an active run. What the run makes of the message
// follows the cursor in the thread's events.
type Steered struct {
	Cursor string `json:"cursor"`
	// RunID is the active run, by the ID that clients know. Repeated tells that the run had
	// received the message before.
	RunID    string `json:"runId"`
	Repeated bool   `json:"repeated,omitempty"`
}

// Steer sends a user message to the active run of a thread, raw being the AG-UI message in JSON. It
// first proposes the message to the log, and returns when the workflow has accepted the proposal.
// The same message again has no effect. It takes at most request.ResponseTimeout.
//
// Errors: 400 for an invalid message or an ID that another message has, 409 not_active, 429
// too_much_steering.
func (s *Sender) Steer(ctx context.Context, thread stream.Thread, raw json.RawMessage) (Steered, error) {
	message, err := decodeSteering(raw)
	if err != nil {
		return Steered{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, request.ResponseTimeout)
	defer cancel()
	snap, err := s.Finder.Snapshots.Latest(ctx, thread, 0)
	if err != nil {
		return Steered{}, err
	}
	run, err := s.activeRun(ctx, thread, snap)
	if err != nil {
		return Steered{}, err
	}
	digest := message.Digest()
	extracted, err := s.extractFiles(ctx, thread, message, snap)
	if err != nil {
		return Steered{}, err
	}
	accepted := stream.Acceptance{Tail: []stream.TailMessage{{ID: message.ID, Message: message}}}
	if !snap.CanSteer(accepted) {
		return Steered{}, problem.BadRequest("invalid_input", "/message/id", "is already the ID of another message of the thread")
	}
	if err := CheckContributor(ctx, snap); err != nil {
		return Steered{}, err
	}
	if s.Files != nil {
		if err := s.Files.Attach(ctx, thread, accepted, extracted, func(string) string { return "/message" }); err != nil {
			return Steered{}, err
		}
	}
	// The digest is over the message as it was sent, so the same message to the same run is the same proposal.
	proposal, err := s.Finder.Log.ProposeInput(ctx, run, digest, &stream.Input{Accepted: accepted, Requester: request.Requester(ctx)})
	if err != nil {
		return Steered{}, err
	}
	return s.SendSteering(ctx, run, proposal)
}

// extractFiles replaces base64 data of a steering message by the URLs of files.
func (s *Sender) extractFiles(ctx context.Context, thread stream.Thread, message *agui.Message, snap *snapshot.Snapshot) (attachments.Extracted, error) {
	if s.Files == nil {
		return nil, nil
	}
	changed, extracted, err := s.Files.Extract(ctx, thread, []agui.Message{*message}, snap.Has)
	if err != nil {
		if refused, ok := errors.AsType[*problem.Problem](err); ok { // a request to steer has one message
			refused.Pointer = strings.Replace(refused.Pointer, "/messages/0", "/message", 1)
		}
		return nil, err
	}
	*message = changed[0]
	return extracted, nil
}

// activeRun returns the active run of a thread, by the log or by the workflow. A run that Temporal
// has started may not be in the log yet: then the workflow names it, by refusing an offer without a
// run. Without an active run the error is errNotActive.
func (s *Sender) activeRun(ctx context.Context, thread stream.Thread, snap *snapshot.Snapshot) (stream.Run, error) {
	if snap.RunID != "" && !snap.Sealed {
		return stream.Run{Thread: thread, ID: snap.RunID}, nil
	}
	_, err := s.Dispatch.Offer(ctx, thread, runs.SubmitRequest{}, "")
	if active, busy := dispatch.BusyWith(err); busy {
		return stream.Run{Thread: thread, ID: active}, nil
	}
	var notFound *serviceerror.NotFound
	var refusal *temporal.ApplicationError // the thread waits for decisions and has no active run
	if err == nil || errors.As(err, &notFound) || errors.As(err, &refusal) {
		return stream.Run{}, errNotActive(thread)
	}
	return stream.Run{}, fmt.Errorf("api: find the active run: %w", err)
}

// SendSteering has the run's workflow accept a proposed input as steering. The error is that of
// Update; the result is valid only without one. If the run has too much steering, the proposal is
// withdrawn.
func (s *Sender) SendSteering(ctx context.Context, run stream.Run, proposal stream.Proposal) (Steered, error) {
	var result runs.SteerResult
	err := s.Update(ctx, run.Thread, runs.UpdateSteer, runs.SteerRequest{RunID: run.ID, Input: proposal.Seq}, &result)
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == codeTooMuchSteering {
		s.Withdraw(ctx, proposal)
	}
	cursor := s.Finder.Log.CursorAt(proposal.Seq)
	return Steered{Cursor: cursor.String(), RunID: run.Shown(), Repeated: result.Repeated}, err
}

// decodeSteering decodes and validates a message like one of an input, and requires the role user.
// It wraps the message into an input to reuse the decoder, and corrects the pointers of its errors.
func decodeSteering(raw json.RawMessage) (*agui.Message, error) {
	if len(raw) == 0 {
		return nil, problem.BadRequest("invalid_input", "/message", "is missing")
	}
	in, err := agui.DecodeInput([]byte(`{"threadId":"-","runId":"-","messages":[` + string(raw) + `]}`))
	var decodeErr *agui.DecodeError
	if errors.As(err, &decodeErr) {
		return nil, problem.BadRequest("invalid_input", strings.Replace(decodeErr.Pointer, "/messages/0", "/message", 1), decodeErr.Detail)
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

// CheckContributor refuses content of a caller that would exceed the contributors of a thread, with
// 409 too_many_contributors.
func CheckContributor(ctx context.Context, snap *snapshot.Snapshot) error {
	if snap.CanContribute(request.Requester(ctx)) {
		return nil
	}
	return problem.New(http.StatusConflict, "too_many_contributors",
		fmt.Sprintf("the thread has content of %d callers, the maximum: start another thread", snapshot.MaxContributors))
}
