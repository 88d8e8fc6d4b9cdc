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
// (authenticate) and refused unknown query parameters (checkQuery) before startRun is called. Then:
//
//	authorize ─► decode ─► validate ─► follow ─► wait ─► existing ─► load ─► resolve ─► admit ─► propose ─► start ─► show
//	                                                     └──────────── again, if the thread changed ────────────┘
//
// wait is AwaitDecision of the finder, for waitFor; propose is ProposeInput of the log. After show,
// abandon cancels the run if its client is gone and wanted that.
//
// A run frame on a WebSocket takes the same path from authorize to start (socket_run.go).
//
// The path is safe to repeat at every point. A proposal alone starts nothing, the same input is the
// same proposal, and Temporal allows one workflow per thread. So a client that gets a 503, or loses
// the connection, sends the same input again: the API attaches it to the run or starts the run
// once.

// startRun serves POST /v1/agents/{agent}/runs, the run endpoint of AG-UI. It answers with the
// events of the input's run, as SSE or in the binary format, until the run ends or the client
// disconnects. An input that has begun a run before gets that run's events, from its start. With
// onBusy steer it answers 202 with a commands.Steered if the active run has received the message.
//
// Important errors: 400 invalid_input, 403 and 422 for decisions in resume, 404 unknown_agent, 409
// busy, interrupted, missing_tool_results or run_id_reused, 429 queue_full, 503. All of them come
// before the first event; afterwards the stream only breaks off.
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
	// The slot is taken after the body was read, so clients that send slowly occupy no streams.
	if err := s.streams.Enter(); err != nil {
		s.Refuse(c, err)
		return
	}
	defer s.streams.Leave()
	in, err := s.prepare(c.Request.Context(), agent, input)
	if err != nil {
		s.Refuse(c, err)
		return
	}
	defer in.Close()
	c.Request = c.Request.WithContext(request.WithRun(c.Request.Context(), in.run, in.agent.Name))
	// The timeout bounds the start of the run, not the stream. When it passes, the answer is a 503
	// and the outcome is unknown.
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.Patience)
	defer cancel()
	err = s.find.AwaitDecision(ctx, in.run.Thread, c.Query("waitFor"))
	if err == nil {
		err = s.startOrAttach(ctx, in)
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

// authorize returns the current revision of the agent that a request names, before the body is
// read. Every authenticated caller may run every agent, since agents are shared by all tenants;
// threads are not (see request.ThreadIn). An unknown agent is a 404.
func (s *Server) authorize(agent string) (catalog.Published, error) {
	return s.Catalog.Current(agent)
}

// decode reads the body, within MaxBody and BodyTime, and decodes the input.
func (s *Server) decode(c *gin.Context) (*agui.RunAgentInput, error) {
	body, err := s.ReadJSONBody(c)
	if err != nil {
		return nil, err
	}
	return decodeInput(body)
}

// preparedInput is an input that has passed all checks which need no thread, with a view of its
// run. One request or frame owns it, on one goroutine, and closes it. The stages of startOrAttach
// change run, view, input.Resume and steered.
type preparedInput struct {
	// run is the run of the input. If several runs have the input's run ID, it becomes the segment
	// that the input belongs to (see existing).
	run    stream.Run
	input  *agui.RunAgentInput
	digest [32]byte // see digestInput; computed before the stages of startOrAttach change input
	agent  catalog.Published
	props  props
	// resume are the input's entries as the client sent them. For an agent with legacyInterrupts,
	// resolve interprets them anew in each round, by the interrupts that the thread then has.
	resume []agui.ResumeEntry
	// view shows the run from its first record. It was attached before the log was read, so it
	// misses no record that is written meanwhile.
	view *view.View
	// steered is set if the active run has received the input's messages as steering. The input
	// then has no run of its own, and no stream.
	steered *commands.Steered
}

// Close ends the view. The run continues.
func (in *preparedInput) Close() { in.view.Close() }

// prepare validates an input as far as no thread is needed, and attaches a view to its run. The
// caller closes the result.
func (s *Server) prepare(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*preparedInput, error) {
	in, err := s.validate(ctx, agent, input)
	if err != nil {
		return nil, err
	}
	in.view = s.follow(in)
	return in, nil
}

// startOrAttach finds the run of an input, or starts it. It returns nil if the run exists, was
// started or queued, or if the input has become steering (in.steered).
//
// The log decides which run an input belongs to. Temporal only guarantees that one run of a thread
// is active at a time. The two are not changed atomically: other nodes place inputs, and workflows
// close, concurrently. So each stage works on a snapshot, and startOrAttach repeats all of them if
// start finds that the thread has changed. After dispatch.Rounds rounds it gives up, which the
// client sees as a 503.
func (s *Server) startOrAttach(ctx context.Context, in *preparedInput) error {
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
		// The input is durable before the workflow starts, because the workflow gets only its
		// sequence.
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

// validate checks what needs no thread: the tenant, and forwardedProps.perdure. It changes the
// input: it removes members that this version of AG-UI does not have (strip), takes parentRunId
// from perdure, and converts a legacy command to an entry of resume.
func (s *Server) validate(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*preparedInput, error) {
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
	return &preparedInput{
		run: run, input: input, digest: digestInput(input), agent: agent, props: wanted, resume: input.Resume,
	}, nil
}

// follow attaches a view to the run of an input, in the protocol generation that the input names.
func (s *Server) follow(in *preparedInput) *view.View {
	return s.views.Run(in.run, view.Options{Profile: stream.ProfileOf(in.input.ProtocolVersion)})
}

// existing looks for the run that the input has begun: the same input is the same run, for ever.
// found reports that in.run is that run. Otherwise last is the sequence of the thread's last
// record, 0 for a new thread.
//
// A run ID may have several runs, its segments, because some clients answer the interrupts of a run
// under the same ID. existing moves in.run and in.view to the segment that has the input, or to the
// first one that has not begun. Only an input with entries of resume may begin a further segment;
// another input with a used run ID is a 409 run_id_reused.
func (s *Server) existing(ctx context.Context, in *preparedInput) (last uint64, found bool, err error) {
	// The view was attached before this read. A record that is missing here reaches the view live.
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
		begun, err := s.Log.OpeningOf(ctx, in.run)
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

// loadedThread is the thread of an input at one record, and the agent of its next run.
type loadedThread struct {
	*snapshot.Snapshot

	agent catalog.Published
}

// load returns the snapshot of the thread at the record last, and the agent of the run. A new
// thread whose input names a parent run is first created as a fork of that run. The agent is the
// one that the request names, or the one to which it has handed the thread over. A state that does
// not suit the agent is a 400.
func (s *Server) load(ctx context.Context, in *preparedInput, last uint64) (loadedThread, error) {
	if last == 0 && in.input.ParentRunID != "" {
		var err error
		if last, err = s.inherit(ctx, in); err != nil {
			return loadedThread{}, err
		}
	}
	snap, err := s.Snapshots.At(ctx, in.run.Thread, last)
	if err != nil {
		return loadedThread{}, err
	}
	agent, err := s.agentOfThread(in.agent, snap)
	if err != nil {
		return loadedThread{}, err
	}
	return loadedThread{snap, agent}, checkOutputState(agent, in.input, snap)
}

// resolution is what an input says about the interrupts and the client tool calls of its thread.
// The zero value has no decisions.
type resolution struct {
	// decisions are about open interrupts and client tool calls. Those about interrupts are in the
	// log as proposals; the content of a tool result is in the input. The workflow takes or refuses
	// them together with the input.
	decisions []runs.Decision
	// answers are the contents of the decisions about interrupts. The log keeps them with the
	// input, so that the API can show the client a concurrent decision that stands instead. late
	// are answers to interrupts that were resolved earlier; they change nothing.
	answers, late []stream.LateAnswer
	// onlyLate tells that all of the input's answers are late. Its run shows which decisions stand.
	onlyLate bool
}

// resolve reads what an input says about interrupts and client tool calls, checks that the caller
// may decide, and proposes the decisions to the log. A decision that the caller may not make
// refuses the whole input, with 403 or 422.
func (s *Server) resolve(ctx context.Context, in *preparedInput, thread loadedThread) (resolution, error) {
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

// admission is an input as it is offered to the thread's workflow.
type admission struct {
	// input is the proposal: the client's input without messages, and the conversation of its run.
	input  *stream.Input
	onBusy runs.OnBusy
	// decisions are those of the resolution. answersOnly tells that the run only shows which
	// decisions stand: no message is new, and no model is called.
	decisions   []runs.Decision
	answersOnly bool
}

// admit judges the messages of an input against the thread's conversation
// (docs/concepts/history.md). It chooses the history mode, the behavior on a busy thread, and the
// requester of the run. It writes nothing.
func (s *Server) admit(ctx context.Context, in *preparedInput, thread loadedThread, r resolution) (admission, error) {
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
	// The client's list has messages that the conversation leaves out, so the client needs a
	// snapshot.
	accepted.Differs = accepted.Differs || len(messages) < len(in.input.Messages)
	asker, err := s.decisions.Requester(ctx, thread.Snapshot, len(r.decisions) > 0 && len(accepted.Tail) == 0)
	if err != nil {
		return admission{}, err
	}
	// The proposal must not hold the conversation: its size would grow with the thread. accepted
	// has the new messages.
	plain := *in.input
	plain.Messages = nil
	return admission{
		input:  &stream.Input{Input: plain, Accepted: accepted, Requester: asker, Answers: r.answers, Late: r.late},
		onBusy: onBusy, decisions: r.decisions, answersOnly: r.onlyLate && len(accepted.Tail) == 0,
	}, nil
}

// start starts the workflow of the run. If a workflow occupies the thread, start offers the run to
// it, which accepts, queues or refuses it by onBusy. The result is false without an error if the
// thread has changed, and startOrAttach has to load it again.
func (s *Server) start(ctx context.Context, in *preparedInput, thread loadedThread, admitted admission, proposal stream.Proposal) (bool, error) {
	offered := dispatch.RunInput(in.run, thread.agent, proposal)
	offered.Trace = telemetry.TraceParent(ctx)
	offered.ParkAfter, offered.Hold, offered.AnswersOnly = s.ParkAfter, in.props.Hold, admitted.answersOnly
	taken, placed, err := s.dispatch.StartOrOffer(ctx, offered, dispatch.Terms{OnBusy: admitted.onBusy, Decisions: admitted.decisions}, thread.Snapshot)
	if active, busy := dispatch.BusyWith(err); busy && admitted.onBusy == runs.OnBusySteer {
		return s.steerInstead(ctx, in, thread, admitted, proposal, active)
	}
	if err != nil {
		return false, s.refusedBy(ctx, in, thread, err)
	}
	// The workflow has counted the decisions, but a quorum needs more votes.
	if taken.Open {
		return false, errStillOpen(thread.RunID)
	}
	return placed, nil
}

// steerInstead sends the input's messages to the active run as steering, and sets in.steered. It
// returns false without an error if that run ends meanwhile: then startOrAttach loads the thread
// again. An input that changes or cuts messages cannot steer, and gets a 409 busy.
func (s *Server) steerInstead(ctx context.Context, in *preparedInput, thread loadedThread, admitted admission, proposal stream.Proposal, active string) (bool, error) {
	if !thread.CanSteer(admitted.input.Accepted) {
		p := problem.New(http.StatusConflict, "busy", "the input changes earlier messages, and the active run accepts only new ones")
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

// agentOfThread returns the agent of a run for which the client names an agent. It is the named
// one, unless that took part in a handoff: then it is the agent that the thread was handed over to.
func (s *Server) agentOfThread(named catalog.Published, thread *snapshot.Snapshot) (catalog.Published, error) {
	name := thread.AnsweringAgent(named.Name)
	if name == named.Name {
		return named, nil
	}
	p, err := s.Catalog.Current(name)
	if errors.Is(err, catalog.ErrUnknownAgent) { // published before it got the thread: this node has not read that yet
		return p, fmt.Errorf("api: this node does not know agent %q of the thread yet", name)
	}
	return p, err
}

// checkOutputState refuses, with 400, a state that is neither an object nor null if the agent has
// steps or is a program: the outputs of its steps become members of the state. It judges the state
// that the run would begin with, from the input or from the thread.
func checkOutputState(agent catalog.Published, input *agui.RunAgentInput, thread *snapshot.Snapshot) error {
	if len(agent.Steps) == 0 && agent.Workflow == "" {
		return nil
	}
	state := bytes.TrimSpace(thread.StateWith(&stream.Input{Input: *input}))
	if bytes.HasPrefix(state, []byte("{")) || bytes.Equal(state, []byte("null")) {
		return nil
	}
	return problem.BadRequest("invalid_input", "/state", "must be an object, because the outputs of the agent's steps are its members")
}
