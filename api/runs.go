package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/commands"
	"github.com/perdure/perdure/api/decisions"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/control/dispatch"
	"github.com/perdure/perdure/internal/process/telemetry"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/view"
)

// This file is the path of an input, top to bottom. Middleware has authenticated the caller
// (authenticate) and bounded the requests of the node (countStream) before startRun is called.
// Then:
//
//	authorize ─► decode ─► validate ─► follow ─► existing ─► load ─► resolve ─► admit ─► propose ─► start ─► show
//	                                             └──────────── again, if the thread changed ────────────┘
//
// The frame run of a WebSocket takes the same path up to start.

// startRun is the endpoint POST /v1/agents/{agent}/runs of AG-UI: it answers an input with the
// events of its run. An input that was sent before is answered with the run that it has begun.
func (s *Server) startRun(c *gin.Context) {
	agent, err := s.authorize(request.Segment(c, "agent"))
	if err != nil {
		s.Refuse(c, err)
		return
	}
	input, err := s.decode(c)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if err := s.streams.Enter(); err != nil {
		s.Refuse(c, err)
		return
	}
	defer s.streams.Leave()
	in, err := s.accept(c.Request.Context(), agent, input)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	defer in.Close()
	c.Request = c.Request.WithContext(request.WithRun(c.Request.Context(), in.run, in.agent.Name))
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	err = s.find.AwaitDecision(ctx, in.run.Thread, c.Query("waitFor"))
	if err == nil {
		err = s.place(ctx, in)
	}
	if err != nil {
		s.Refuse(c, err)
		return
	}
	if in.steered != nil {
		c.JSON(http.StatusAccepted, in.steered)
		return
	}
	s.streams.Show(c, in.view, nil)
	s.abandon(c.Request.Context(), in)
}

// authorize finds the agent that a request names, before the body is read. Every caller of a tenant
// may run every agent; the thread is one of the caller's tenant (see threadIn).
func (s *Server) authorize(agent string) (catalog.Published, error) {
	return s.Catalog.Current(agent)
}

// decode reads the body, within the bounds of bodies, and decodes the input.
func (s *Server) decode(c *gin.Context) (*agui.RunAgentInput, error) {
	body, err := s.ReadJSONBody(c)
	if err != nil {
		return nil, err
	}
	return decodeInput(body)
}

// acceptedInput is an input that has passed all checks which need no thread, and a view of the run
// that it begins.
type acceptedInput struct {
	run    stream.Run // its segment, if several runs have the input's run ID
	input  *agui.RunAgentInput
	digest [32]byte // of what the input asks for
	agent  catalog.Published
	props  props
	// resume are the input's entries as they came. An agent with legacy interrupts understands them
	// by what the thread asks.
	resume []agui.ResumeEntry
	// view shows the run from its first record. It was attached before the log was read, so it
	// misses nothing.
	view *view.View
	// steered is set if the thread was busy and its active run was told what the input says.
	steered *commands.Steered
}

// Close ends the view.
func (in *acceptedInput) Close() { in.view.Close() }

// accept checks an input as far as no thread is needed, and follows its run. The caller closes what
// it returns.
func (s *Server) accept(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*acceptedInput, error) {
	in, err := s.validate(ctx, agent, input)
	if err != nil {
		return nil, err
	}
	in.view = s.follow(in)
	return in, nil
}

// place finds the run of an input, or starts it. The log decides which run an input is, Temporal
// only that one run at a time is active on a thread. The stages are taken again if the thread
// changed meanwhile.
func (s *Server) place(ctx context.Context, in *acceptedInput) error {
	for range dispatch.Rounds {
		last, found, err := s.existing(ctx, in)
		if found || err != nil {
			return err
		}
		thread, err := s.load(ctx, in, last)
		if err != nil {
			return err
		}
		answers, err := s.resolve(ctx, in, thread)
		if err != nil {
			return err
		}
		admitted, err := s.admit(ctx, in, thread, answers)
		if err != nil {
			return err
		}
		proposal, err := s.Log.ProposeInput(ctx, in.run, in.digest, admitted.input)
		if err != nil {
			return err
		}
		started, err := s.start(ctx, in, thread, admitted, proposal)
		if started || err != nil {
			return err
		}
	}
	return fmt.Errorf("api: thread %q changed %d times while an input was placed", in.run.Thread.ID, dispatch.Rounds)
}

// validate checks what needs no thread: forwardedProps.perdure, and the forms of earlier clients.
// It takes out of the input what this version does not know.
func (s *Server) validate(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*acceptedInput, error) {
	thread, err := request.ThreadIn(ctx, input.ThreadID)
	if err != nil {
		return nil, err
	}
	wanted, err := propsOf(input)
	if err != nil {
		return nil, err
	}
	run := stream.Run{Thread: thread, ID: input.RunID}
	s.strip(request.WithRun(ctx, run, agent.Name), input)
	input.ParentRunID = cmp.Or(input.ParentRunID, wanted.ParentRunID)
	if agent.LegacyInterrupts {
		decisions.ResumeByCommand(input)
	}
	return &acceptedInput{
		run: run, input: input, digest: digestInput(input), agent: agent, props: wanted, resume: input.Resume,
	}, nil
}

// follow attaches a view to the run of an input.
func (s *Server) follow(in *acceptedInput) *view.View {
	return s.views.Run(in.run, view.Options{Profile: stream.ProfileOf(in.input.ProtocolVersion)})
}

// existing looks for a run that the input has begun: the same input is the same run, for ever. It
// returns the thread's last record, 0 = the thread is new. Another input with the same run ID is
// refused, unless it has entries of resume: then it begins the next segment of the run, and the
// view is moved there.
func (s *Server) existing(ctx context.Context, in *acceptedInput) (last uint64, found bool, err error) {
	if last, err = s.Log.LastOf(ctx, in.run.Thread); err != nil {
		return 0, false, err
	}
	if last == 0 {
		in.view.SkipPast()
		return 0, false, nil
	}
	first := stream.Run{Thread: in.run.Thread, ID: in.input.RunID}
	for n := 1; ; n++ {
		if run := first.Segment(n); in.run != run {
			in.view.Close()
			in.run = run
			in.view = s.follow(in)
		}
		begun, err := s.Log.Begun(ctx, in.run)
		switch {
		case err != nil || begun == nil:
			return last, false, err
		case begun.Digest == hex.EncodeToString(in.digest[:]):
			return last, true, nil
		case len(in.input.Resume) == 0:
			return last, false, errRunIDReused(in.run)
		}
	}
}

// loadedThread is a thread at its last record, and the agent of its next run.
type loadedThread struct {
	*snapshot.Snapshot

	agent catalog.Published
}

// load returns the thread at its last record. A new thread whose input names a parent run begins as
// a fork of that run. The agent is the one that the input names, or the one that it has handed the
// thread over to. A state that does not suit the agent is refused.
func (s *Server) load(ctx context.Context, in *acceptedInput, last uint64) (loadedThread, error) {
	if last == 0 && in.input.ParentRunID != "" {
		var err error
		if last, err = s.inherit(ctx, in); err != nil {
			return loadedThread{}, err
		}
	}
	now, err := s.Snapshots.At(ctx, in.run.Thread, last)
	if err != nil {
		return loadedThread{}, err
	}
	agent, err := s.speaker(in.agent, now)
	if err != nil {
		return loadedThread{}, err
	}
	return loadedThread{now, agent}, checkOutputState(agent, in.input, now)
}

// resolution is what an input says about the interrupts and the client tool calls of its thread.
type resolution struct {
	// decisions are about those that are open. The workflow takes them with the input.
	decisions []runs.Decision
	// answers are what the decisions say, for the log; late are answers to interrupts that were
	// decided before.
	answers, late []stream.LateAnswer
	// onlyLate tells that the input says nothing else: its run shows what was decided.
	onlyLate bool
}

// resolve reads what an input says about interrupts and client tool calls, checks that the caller
// may decide, and writes the decisions to the log.
func (s *Server) resolve(ctx context.Context, in *acceptedInput, thread loadedThread) (resolution, error) {
	if in.agent.LegacyInterrupts {
		in.input.Resume = s.decisions.Interpret(in.resume, thread.Snapshot)
	}
	var r resolution
	var err error
	if r.decisions, r.answers, err = s.decisions.Resume(ctx, in.input, in.run.Thread, thread.Snapshot); err != nil {
		return r, err
	}
	if r.onlyLate = decisions.AnswersLate(in.input, thread.Snapshot); r.onlyLate {
		r.late = decisions.LateAnswers(in.input.Resume, thread.Snapshot)
	}
	return r, nil
}

// admission is what an input means for its thread.
type admission struct {
	// input is the proposal: the input without messages, and the conversation of its run.
	input  *stream.Input
	onBusy runs.OnBusy
	// decisions are those of the resolution. answersOnly tells that the run has nothing else to say
	// than which stand.
	decisions   []runs.Decision
	answersOnly bool
}

// admit judges the messages of an input against the thread (see docs/concepts/history.md), and
// decides what happens if the thread is busy.
func (s *Server) admit(ctx context.Context, in *acceptedInput, thread loadedThread, r resolution) (admission, error) {
	seen, err := s.seenSequence(in.props.Seen)
	if err != nil {
		return admission{}, err
	}
	history, onBusy := cmp.Or(in.props.History, snapshot.History(in.agent.History), snapshot.HistoryAuto), in.props.OnBusy
	if len(r.decisions) > 0 && len(thread.Interrupts) > 0 && history == snapshot.HistoryAuto {
		history = snapshot.HistoryAppend // an input that answers interrupts does not ask for another answer
	}
	messages := decisions.WithoutAnswers(in.input.Messages, thread.Snapshot, history)
	if r.onlyLate {
		history, onBusy = snapshot.HistoryAppend, runs.OnBusyEnqueue // it waits for the active run
	}
	accepted := thread.Accept(snapshot.Claim{Messages: messages, History: history, Seen: seen})
	accepted.Differs = accepted.Differs || len(messages) < len(in.input.Messages)
	asker, err := s.decisions.Requester(ctx, thread.Snapshot, len(r.decisions) > 0 && len(accepted.Tail) == 0)
	if err != nil {
		return admission{}, err
	}
	plain := *in.input
	plain.Messages = nil
	return admission{
		input:  &stream.Input{Input: plain, Accepted: accepted, Requester: asker, Answers: r.answers, Late: r.late},
		onBusy: onBusy, decisions: r.decisions, answersOnly: r.onlyLate && len(accepted.Tail) == 0,
	}, nil
}

// start starts the workflow of the run, or offers the run to the workflow that occupies the thread.
// It returns false if the thread has to be looked at again.
func (s *Server) start(ctx context.Context, in *acceptedInput, thread loadedThread, admitted admission, proposal stream.Proposal) (bool, error) {
	offered := dispatch.RunInput(in.run, thread.agent, proposal)
	offered.Trace = telemetry.TraceParent(ctx)
	offered.ParkAfter, offered.Hold, offered.AnswersOnly = s.ParkAfter, in.props.Hold, admitted.answersOnly
	taken, placed, err := s.dispatch.Place(ctx, offered, dispatch.Terms{OnBusy: admitted.onBusy, Decisions: admitted.decisions}, thread.Snapshot)
	if active, busy := dispatch.BusyWith(err); busy && admitted.onBusy == runs.OnBusySteer {
		return s.steerInstead(ctx, in, thread, admitted, proposal, active)
	}
	if err != nil {
		return false, refusedBy(in.run, err)
	}
	if taken.Open {
		return false, errStillOpen(thread.RunID)
	}
	return placed, nil
}

// steerInstead tells the active run what the input says. If that run ends meanwhile, the thread is
// looked at again.
func (s *Server) steerInstead(ctx context.Context, in *acceptedInput, thread loadedThread, admitted admission, proposal stream.Proposal, active string) (bool, error) {
	if !thread.CanSteer(admitted.input.Accepted) {
		p := problem.New(http.StatusConflict, "busy", "the input changes messages or asks for another answer, and the active run can only be told new messages")
		p.ActiveRun = stream.ShownRunID(active)
		return false, p
	}
	answer, err := s.commands.Tell(ctx, stream.Run{Thread: in.run.Thread, ID: active}, proposal)
	var p *problem.Problem
	if errors.As(err, &p) && p.Code == commands.CodeNotActive {
		return false, nil
	}
	in.steered = &answer
	return true, err
}

// speaker returns the agent of a run that is asked for: the one that is named, or the one that it
// has handed the thread over to.
func (s *Server) speaker(named catalog.Published, thread *snapshot.Snapshot) (catalog.Published, error) {
	name := thread.Speaker(named.Name)
	if name == named.Name {
		return named, nil
	}
	p, err := s.Catalog.Current(name)
	if errors.Is(err, catalog.ErrUnknownAgent) { // published before it got the thread: this node has not read that yet
		return p, fmt.Errorf("api: this node does not know agent %q yet, which has the thread", name)
	}
	return p, err
}

// checkOutputState refuses a state that the outputs of the agent's steps would replace: they are
// members of it.
func checkOutputState(agent catalog.Published, input *agui.RunAgentInput, thread *snapshot.Snapshot) error {
	if len(agent.Steps) == 0 && agent.Workflow == "" {
		return nil
	}
	state := bytes.TrimSpace(thread.StateWith(&stream.Input{Input: *input}))
	if bytes.HasPrefix(state, []byte("{")) || bytes.Equal(state, []byte("null")) {
		return nil
	}
	return problem.BadRequest("invalid_input", "/state", "must be an object: the outputs of the agent's steps are members of it")
}
