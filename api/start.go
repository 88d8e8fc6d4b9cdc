package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.temporal.io/sdk/temporal"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/dispatch"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
)

// offer is a run that a client wants to see: to be started, or found running.
type offer struct {
	run    stream.Run
	input  *agui.RunAgentInput
	digest [32]byte
	agent  catalog.Published
	props  props
	view   *view.View
	// sent are the entries of resume as they came, where they are to be understood by what the thread has asked.
	sent []agui.ResumeEntry
	// steered is set when the thread was busy and what the input says was told to its active run.
	steered *steered
}

// offer makes an offer of an input. Its view must be closed; it comes first, so that what the run
// writes from its first moment on goes to it.
func (s *Server) offer(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*offer, error) {
	thread, err := threadIn(ctx, input.ThreadID)
	if err != nil {
		return nil, err
	}
	wanted, err := propsOf(input)
	if err != nil {
		return nil, err
	}
	run := stream.Run{Thread: thread, ID: input.RunID}
	s.strip(ofRun(ctx, run, agent.Name), input)
	input.ParentRunID = cmp.Or(input.ParentRunID, wanted.ParentRunID)
	if agent.LegacyInterrupts {
		resumeByCommand(input)
	}
	view := s.views.Run(run, view.Options{Profile: stream.ProfileOf(input.ProtocolVersion)})
	return &offer{run: run, input: input, digest: digestInput(input), agent: agent, props: wanted, view: view, sent: input.Resume}, nil
}

// told bounds how many of an input's oddities are logged, and maxPointer how long each may be.
const (
	told       = 5
	maxPointer = 100
)

// strip takes out of an input what this version does not know: that makes no input invalid.
func (s *Server) strip(ctx context.Context, input *agui.RunAgentInput) {
	warnings := agui.StripInput(input)
	if len(warnings) == 0 {
		return
	}
	var at []string
	for _, w := range warnings[:min(told, len(warnings))] {
		at = append(at, w.Pointer[:min(maxPointer, len(w.Pointer))])
	}
	s.logger.WarnContext(ctx, "the input has members that this server does not know and ignores", "count", len(warnings), "at", at)
}

// place finds out what an offer is, and starts the run if it is new. The log decides who a run is,
// Temporal only that one at a time is alive on a thread.
func (s *Server) place(ctx context.Context, o *offer) error {
	for range dispatch.Rounds {
		thread, err := s.Snapshots.Latest(ctx, o.run.Thread, 0)
		if err != nil {
			return err
		}
		if thread.Seq == 0 && o.input.ParentRunID != "" {
			if err := s.inherit(ctx, o); err != nil {
				return err
			}
			continue
		}
		if thread.Seq == 0 {
			o.view.SkipPast()
		} else if attached, err := s.attach(ctx, o); attached || err != nil {
			return err
		}
		placed, err := s.start(ctx, o, thread)
		if placed || err != nil {
			return err
		}
	}
	return fmt.Errorf("api: thread %q did not come to rest", o.run.Thread.ID)
}

// start writes the input down and starts the workflow. It reports false if the thread has to be
// looked at again.
func (s *Server) start(ctx context.Context, o *offer, thread *snapshot.Snapshot) (bool, error) {
	if o.agent.LegacyInterrupts {
		o.input.Resume = s.meant(o.sent, thread)
	}
	agent, err := s.speaker(o.agent, thread)
	if err != nil {
		return false, err
	}
	if err := mayHaveOutputs(agent, o.input, thread); err != nil {
		return false, err
	}
	decisions, answers, err := s.resumed(ctx, o, thread)
	if err != nil {
		return false, err
	}
	input, history := *o.input, cmp.Or(o.props.History, snapshot.History(o.agent.History), snapshot.HistoryAuto)
	input.Messages = nil
	if len(decisions) > 0 && len(thread.Interrupts) > 0 && history == snapshot.HistoryAuto {
		history = snapshot.HistoryAppend // an input that answers interrupts does not ask for another answer
	}
	seen, err := s.seen(o.props.Seen)
	if err != nil {
		return false, err
	}
	said := withoutAnswers(o.input.Messages, thread, history)
	late := answersLate(o.input, thread)
	if late {
		history, o.props.OnBusy = snapshot.HistoryAppend, runs.OnBusyEnqueue // it waits for what goes on
	}
	accepted := thread.Accept(snapshot.Claim{Messages: said, History: history, Seen: seen})
	accepted.Differs = accepted.Differs || len(said) < len(o.input.Messages)
	asker, err := s.asker(ctx, thread, len(decisions) > 0 && len(accepted.Tail) == 0)
	if err != nil {
		return false, err
	}
	proposed := &stream.Input{Input: input, Accepted: accepted, Requester: asker, Answers: answers}
	if late {
		proposed.Late = lateAnswers(o.input.Resume, thread)
	}
	proposal, err := s.Log.ProposeInput(ctx, o.run, o.digest, proposed)
	if err != nil {
		return false, err
	}
	in := dispatch.RunInput(o.run, agent, proposal)
	in.Trace = telemetry.TraceParent(ctx)
	in.ParkAfter, in.Hold, in.AnswersOnly = s.ParkAfter, o.props.Hold, late && len(accepted.Tail) == 0
	taken, placed, err := s.dispatch.Place(ctx, in, dispatch.Terms{OnBusy: o.props.OnBusy, Decisions: decisions}, thread)
	if active, busy := dispatch.BusyWith(err); busy && o.props.OnBusy == runs.OnBusySteer {
		if !thread.CanSteer(accepted) {
			p := problem(http.StatusConflict, "busy", "the input changes messages or asks for another answer, and the active run can only be told new messages")
			p.ActiveRun = stream.ShownRunID(active)
			return false, p
		}
		return s.steerInstead(ctx, o, in.Input, stream.Run{Thread: o.run.Thread, ID: active})
	}
	if err != nil {
		return false, refusedBy(err)
	}
	if taken.Open {
		return false, stillOpen(thread.RunID)
	}
	return placed, nil
}

// speaker is the agent of a run that is asked for: the one that is named, or the one that it has handed the thread over to.
func (s *Server) speaker(named catalog.Published, thread *snapshot.Snapshot) (catalog.Published, error) {
	name := thread.Speaker(named.Name)
	if name == named.Name {
		return named, nil
	}
	p, err := s.Catalog.Current(name)
	if errors.Is(err, catalog.ErrUnknownAgent) { // it was published before it got the thread: this node is about to hear of it
		return p, fmt.Errorf("api: this node does not know agent %q yet, which has the thread", name)
	}
	return p, err
}

// mayHaveOutputs refuses a state that the outputs of the agent's steps would replace: they are a member of it.
func mayHaveOutputs(agent catalog.Published, input *agui.RunAgentInput, thread *snapshot.Snapshot) error {
	if len(agent.Steps) == 0 && agent.Workflow == "" {
		return nil
	}
	state := bytes.TrimSpace(thread.StateWith(&stream.Input{Input: *input}))
	if bytes.HasPrefix(state, []byte("{")) || bytes.Equal(state, []byte("null")) {
		return nil
	}
	return badRequest("invalid_input", "/state", "must be an object: the outputs of the agent's steps are members of it")
}

// asker is who asks for a run. Who only answers what another run has asked asks for nothing: what goes on is
// still asked for by whoever began it, and they are not to approve it because somebody else has answered once.
func (s *Server) asker(ctx context.Context, thread *snapshot.Snapshot, answers bool) (*auth.Principal, error) {
	if !answers || thread.Input == 0 {
		return requester(ctx), nil
	}
	before, err := s.Log.Input(ctx, thread.Input)
	if err != nil {
		return nil, err
	}
	return before.Requester, nil
}

// steerInstead tells the active run what the input says. That run may end meanwhile: then the thread is
// looked at again.
func (s *Server) steerInstead(ctx context.Context, o *offer, input uint64, active stream.Run) (bool, error) {
	answer, err := s.tellRun(ctx, active, stream.Proposal{Seq: input})
	var p *Problem
	if errors.As(err, &p) && p.Code == "not_active" {
		return false, nil
	}
	o.steered = &answer
	return true, err
}

// interruptedBy refuses an input that leaves questions open: nobody gives them up by not answering.
func interruptedBy(app *temporal.ApplicationError) error {
	var active runs.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem(http.StatusConflict, "interrupted", "the thread waits for decisions: answer all of its interrupts in resume, with status cancelled those that you give up")
	p.ActiveRun = active.RunID
	return p
}

// missingResults refuses an input that leaves out results which its agent insists on.
func missingResults(app *temporal.ApplicationError) error {
	var active runs.Active
	if err := app.Details(&active); err != nil {
		return fmt.Errorf("api: submit: %w", err)
	}
	p := problem(http.StatusConflict, "missing_tool_results", "the thread waits for results of the client's tool calls: send a tool message for each, or post them to tool-results")
	p.ActiveRun, p.PendingToolCallIDs = stream.ShownRunID(active.RunID), active.Waiting
	return p
}

// stillOpen refuses an input whose answers were taken and are not enough.
func stillOpen(asking string) error {
	p := problem(http.StatusConflict, "interrupted", "what the input decides counts, and more people have to approve; when they have, the thread goes on by itself")
	p.ActiveRun, p.Counted = asking, true
	return p
}

// refusedBy tells what a workflow's refusal means.
func refusedBy(err error) error {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return err
	}
	switch app.Type() {
	case runs.ErrorBusy:
		p := problem(http.StatusConflict, "busy", "another run of this thread is active")
		p.ActiveRun, _ = dispatch.BusyWith(err)
		return p
	case runs.ErrorInterrupted:
		return interruptedBy(app)
	case runs.ErrorMissingResults:
		return missingResults(app)
	case runs.ErrorRunIDReused:
		return problem(http.StatusConflict, "run_id_reused", "the run has begun with another input")
	case runs.ErrorQueueFull:
		return problem(http.StatusTooManyRequests, "queue_full", "too many runs wait for this thread")
	}
	return err
}
