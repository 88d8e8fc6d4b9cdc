package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/attachments"
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
//	findAgent          returns the current revision of the agent, or the one that the request names
//	decode             reads and decodes the body
//	Enter              takes one of the places for streams (package streams)
//	prepare            validates what needs no thread, and attaches a view to the run
//	AwaitDecision      waits for the decision of waitFor (package lookup)
//	startOrAttach      repeats the following, up to dispatch.MaxRounds times, if the thread changes:
//	  findRun            refuses a caller that may not send input to the thread (package access), and
//	                     finds the run that the input has begun; then nothing is left to start
//	  checkNewThread     refuses a new thread beyond a quota of the tenant
//	  loadThread         the snapshot of the thread, and the agent of the run
//	  checkNewRun        refuses a new run beyond a quota of the tenant
//	  resolveInterrupts  proposes the decisions of the input
//	  planRun            moves base64 data to files, judges the messages, and chooses the history mode
//	                     and the requester
//	  attachFiles        stores and checks the files of new messages (package attachments)
//	  ProposeInput       writes the input to the log (package stream)
//	  dispatchRun        starts the workflow, or offers the run to the thread's workflow
//	auditDecisions     writes the decisions of the input to the audit log
//	Show               sends the events (package streams)
//
// Afterwards cancelIfDisconnected cancels the run if its client has disconnected, and has requested
// the cancel for that case.
//
// A run frame on a WebSocket takes the same path from findAgent to dispatchRun (socket_run.go).
//
// The path is safe to repeat at every point. A proposal alone starts nothing, the same input is the
// same proposal, and Temporal allows one workflow per thread. So a client that gets a 503, or loses
// the connection, sends the same input again: the API attaches it to the run or starts the run
// once.

// startRun serves POST /v1/agents/{agent}/runs, the run endpoint of AG-UI. It answers with the
// events of the input's run, as SSE or in the binary format, until the run ends or the client
// disconnects. An input that has begun a run before gets that run's events, from its start or after
// Last-Event-ID. With that header, startRun starts no run, and answers 204 if no event follows. With
// onBusy steer it answers 202 with a commands.Steered if the active run has received the message.
//
// Important errors: 400 invalid_input, 403 and 422 for decisions in resume, 404 unknown_agent, 409
// busy, interrupted, missing_tool_results or run_id_reused, 429 queue_full or quota_exceeded, 503.
// All of them come before the first event; afterwards the stream only breaks off.
func (s *Server) startRun(c *gin.Context) error {
	agent, err := s.findAgent(c.Request.Context(), request.Segment(c, "agent"), c.Query("revision"))
	if err != nil {
		return err
	}
	input, err := s.decode(c)
	if err != nil {
		return err
	}
	// The place is taken after the body was read, so clients that send slowly occupy no streams.
	_, leave, err := s.streams.Enter(c.Request.Context())
	if err != nil {
		return err
	}
	defer leave()
	after, _, err := s.finder.CursorAndGeneration(c.GetHeader("Last-Event-ID"), nil)
	if err != nil {
		return err
	}
	in, err := s.prepare(c.Request.Context(), agent, input, after)
	if err != nil {
		return err
	}
	defer in.Close()
	c.Request = c.Request.WithContext(request.WithRun(c.Request.Context(), in.run, in.agent.Name))
	// The timeout bounds the start of the run, not the stream. When it passes, the answer is a 503
	// and the outcome is unknown.
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	if err := problem.InParameter("waitFor", s.finder.AwaitDecision(ctx, in.run.Thread, c.Query("waitFor"))); err != nil {
		return err
	}
	if err := s.startOrAttach(ctx, in); err != nil {
		return err
	}
	s.auditDecisions(ctx, in)
	if in.steered != nil {
		return request.WriteJSON(c, http.StatusAccepted, in.steered)
	}
	in.input, in.resume = nil, nil // the stream may last for hours
	request.ReleaseBody(c)
	first, err := s.firstAfter(c, in)
	if err != nil || c.Writer.Status() == http.StatusNoContent {
		return err
	}
	s.streams.Show(c, in.view, first)
	s.cancelIfDisconnected(c.Request.Context(), in)
	return nil
}

// decode reads the body, within MaxBody and BodyTime, and decodes the input.
func (s *Server) decode(c *gin.Context) (*agui.RunAgentInput, error) {
	body, err := s.ReadJSONBody(c)
	if err != nil {
		return nil, err
	}
	return decodeInput(body)
}

// prepare validates an input as far as no thread is needed, and attaches a view to its run, after a
// cursor or from the start. The caller closes the result.
func (s *Server) prepare(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput, after *stream.Cursor) (*preparedInput, error) {
	in, err := s.validate(ctx, agent, input)
	if err != nil {
		return nil, err
	}
	in.after = after
	in.view = s.attachView(in)
	return in, nil
}

// startOrAttach finds the run of an input, or starts it. It returns nil if the run exists, was
// started or queued, or if the input has become steering (in.steered).
//
// The log decides which run an input belongs to. Temporal only guarantees that one run of a thread
// is active at a time. The two are not changed atomically: other nodes place inputs, and workflows
// close, concurrently. So each stage works on a snapshot, and startOrAttach repeats all of them if
// dispatchRun finds that the thread has changed. After dispatch.MaxRounds rounds it gives up, which
// the client sees as a 503.
func (s *Server) startOrAttach(ctx context.Context, in *preparedInput) error {
	for range dispatch.MaxRounds {
		last, found, err := s.findRun(ctx, in)
		if found || err != nil {
			return err
		}
		if in.after != nil { // only a run that has begun has events before a cursor
			if err := s.finder.CheckRun(ctx, in.run, in.after); err != nil {
				return err
			}
			return problem.NoRun(in.run)
		}
		if last == 0 {
			if err := s.checkNewThread(ctx, in); err != nil {
				return err
			}
		}
		thread, err := s.loadThread(ctx, in, last)
		if err != nil {
			return err
		}
		if err := s.checkNewRun(ctx, in, thread); err != nil {
			return err
		}
		resolved, err := s.resolveInterrupts(ctx, in, thread)
		if err != nil {
			return err
		}
		plan, err := s.planRun(ctx, in, thread, resolved)
		if err != nil {
			return err
		}
		if thread.agent.IsDraft {
			if err := s.Catalog.UseDraft(ctx, thread.agent.Tenant, thread.agent.Name, thread.agent.Revision); err != nil {
				return err
			}
		}
		if err := s.attachFiles(ctx, in, plan); err != nil {
			return err
		}
		// The input is durable before the workflow starts, because the workflow gets only its
		// sequence.
		propose := s.Log.ProposeInput
		if thread.Seq == 0 {
			propose = s.Log.ProposeFirstInput
		}
		proposal, err := propose(ctx, in.run, in.digest, plan.input)
		if errors.Is(err, stream.ErrThreadExists) {
			continue // another request has begun the thread
		}
		if err != nil {
			return err
		}
		started, err := s.dispatchRun(ctx, in, thread, plan, proposal)
		if started || err != nil {
			return err
		}
	}
	return fmt.Errorf("api: thread %q changed %d times while an input was placed", in.run.Thread.ID, dispatch.MaxRounds)
}

// validate checks what needs no thread: the tenant, and forwardedProps.perdure. It changes the
// input: it removes members that this version of AG-UI does not have (strip), takes parentRunId
// from perdure, and converts a legacy command to an entry of resume.
func (s *Server) validate(ctx context.Context, agent catalog.Published, input *agui.RunAgentInput) (*preparedInput, error) {
	thread, err := access.Address(ctx, input.ThreadID)
	if err != nil {
		return nil, err
	}
	p, err := optionsOf(input)
	if err != nil {
		return nil, err
	}
	run := stream.Run{Thread: thread, ID: input.RunID}
	s.strip(request.WithRun(ctx, run, agent.Name), input)
	input.ParentRunID = cmp.Or(input.ParentRunID, p.ParentRunID)
	if agent.AcceptsCommands() {
		decisions.ConvertCommand(input, agent.Remote != nil)
	}
	return &preparedInput{
		run: run, input: input, digest: digestInput(input), agent: agent, props: p, resume: input.Resume,
	}, nil
}

// attachView attaches a view to the run of an input, in the protocol generation that the input
// names.
func (s *Server) attachView(in *preparedInput) *view.View {
	run := s.views.Run(in.run, view.Options{After: in.after, Generation: stream.GenerationOf(in.input.ProtocolVersion)})
	run.Admit(s.access.AdmittedReader(in.run.Thread)) // the view is read after findRun has checked the caller
	return run
}

// findRun checks that the caller may send input to the thread, or begin it. Then it looks for the
// run that the input has begun: the same input is the same run, for ever. found reports that in.run
// is that run. Otherwise last is the sequence of the thread's last record, 0 for a new thread.
//
// A run ID may have several runs, its segments, because some clients answer the interrupts of a run
// under the same ID. findRun moves in.run and in.view to the segment that has the input, or to the
// first one that has not begun. Only an input with entries of resume may begin a further segment;
// another input with a used run ID is a 409 run_id_reused.
func (s *Server) findRun(ctx context.Context, in *preparedInput) (last uint64, found bool, err error) {
	// The view was attached before this read. A record that is missing here reaches the view live.
	if last, err = s.Log.LastOf(ctx, in.run.Thread); err != nil {
		return 0, false, err
	}
	if err := s.access.CheckInput(ctx, in.run.Thread, last); err != nil {
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
			in.view = s.attachView(in)
		}
		opening, err := s.Log.OpeningOf(ctx, in.run)
		switch {
		case err != nil || opening == nil:
			return last, false, err
		case opening.Digest == hex.EncodeToString(in.digest[:]):
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

// loadThread returns the snapshot of the thread at the record last, and the agent of the run. A new
// thread whose input names a parent run is first created as a fork of that run. The agent is the
// one that the request names, or the one to which it has handed the thread over. A state that does
// not suit the agent is a 400.
func (s *Server) loadThread(ctx context.Context, in *preparedInput, last uint64) (loadedThread, error) {
	if last == 0 && in.input.ParentRunID != "" {
		var err error
		if last, err = s.forkParent(ctx, in); err != nil {
			return loadedThread{}, err
		}
	}
	snap, err := s.Snapshots.At(ctx, in.run.Thread, last)
	if err != nil {
		return loadedThread{}, err
	}
	agent, err := s.answeringAgent(in.run.Tenant, in.agent, snap)
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
	// resumeDecisions are the decisions about interrupts, with their content. The log keeps them
	// with the input, so that the API can show the client a concurrent decision that stands
	// instead. lateDecisions are about interrupts that were resolved earlier; they change nothing.
	resumeDecisions, lateDecisions []stream.ResumeDecision
	// hasOnlyLateDecisions tells that all of the input's decisions are late. Its run shows which
	// decisions stand.
	hasOnlyLateDecisions bool
}

// resolveInterrupts reads what an input says about interrupts and client tool calls, checks that
// the caller may decide, and proposes the decisions to the log. A decision that the caller may not
// make refuses the whole input, with 403 or 422.
func (s *Server) resolveInterrupts(ctx context.Context, in *preparedInput, thread loadedThread) (resolution, error) {
	if in.agent.AcceptsCommands() {
		in.input.Resume = s.decisions.Interpret(in.resume, thread.Snapshot)
	}
	var result resolution
	var err error
	if result.decisions, result.resumeDecisions, err = s.decisions.Resume(ctx, in.input, in.run.Thread, thread.Snapshot); err != nil {
		return result, err
	}
	if result.hasOnlyLateDecisions = decisions.HasOnlyLateDecisions(in.input, thread.Snapshot); result.hasOnlyLateDecisions {
		result.lateDecisions = decisions.LateDecisions(in.input.Resume, thread.Snapshot)
	}
	return result, nil
}

// runPlan is an input as it is offered to the thread's workflow.
type runPlan struct {
	// input is the proposal: the client's input without messages, and the conversation of its run.
	// after is the step of a pipeline after which the run begins; "" = at the first one.
	input  *stream.Input
	after  string
	onBusy runs.OnBusy
	// decisions are those of the resolution. answersOnly tells that the run only shows which
	// decisions stand: no message is new, and no model is called.
	decisions   []runs.Decision
	answersOnly bool
	// extracted is the data that files have in place of the messages.
	extracted attachments.Extracted
}

// planRun judges the messages of an input against the thread's conversation
// (docs/concepts/history.md). It chooses the history mode, the behavior on a busy thread, and the
// requester of the run. It writes nothing.
func (s *Server) planRun(ctx context.Context, in *preparedInput, thread loadedThread, resolved resolution) (runPlan, error) {
	seen, err := s.seenSequence(in.props.Seen)
	if err != nil {
		return runPlan{}, err
	}
	history, onBusy := cmp.Or(in.props.History, snapshot.History(in.agent.History), snapshot.HistoryAuto), in.props.OnBusy
	if len(resolved.decisions) > 0 && len(thread.Interrupts) > 0 && history == snapshot.HistoryAuto {
		history = snapshot.HistoryAppend // an input that answers interrupts does not ask for another answer
	}
	var extracted attachments.Extracted
	if s.attachments != nil {
		if in.input.Messages, extracted, err = s.attachments.Extract(ctx, in.run.Thread, in.input.Messages, thread.Has); err != nil {
			return runPlan{}, err
		}
	}
	messages := decisions.WithoutRepeatedAnswers(in.input.Messages, thread.Snapshot, history)
	if resolved.hasOnlyLateDecisions {
		history, onBusy = snapshot.HistoryAppend, runs.OnBusyEnqueue // it waits for the active run
	}
	accepted := thread.Accept(snapshot.Claim{Messages: messages, History: history, Seen: seen})
	if err := checkInputPolicy(thread.agent.Definition, in.input, thread.Snapshot, accepted); err != nil {
		return runPlan{}, err
	}
	// The client's list has messages that the conversation leaves out, so the client needs a
	// snapshot.
	accepted.Differs = accepted.Differs || len(messages) < len(in.input.Messages)
	onlyDecides := len(resolved.decisions) > 0 && len(accepted.Tail) == 0
	requester, sender, err := s.decisions.RequesterOf(ctx, in.input, thread.Snapshot, onlyDecides)
	if err != nil {
		return runPlan{}, err
	}
	// The proposal must not hold the conversation: its size would grow with the thread. accepted
	// has the new messages.
	inputCopy := *in.input
	inputCopy.Messages = nil
	after, task := continuedFork(thread, accepted)
	return runPlan{
		extracted: extracted, after: after, input: &stream.Input{Input: inputCopy, Task: task, Accepted: accepted, Requester: requester, Sender: sender, ResumeDecisions: resolved.resumeDecisions, LateDecisions: resolved.lateDecisions},
		onBusy: onBusy, decisions: resolved.decisions, answersOnly: resolved.hasOnlyLateDecisions && len(accepted.Tail) == 0,
	}, nil
}

// dispatchRun starts the workflow of the run. If a workflow occupies the thread, dispatchRun offers
// the run to it, which accepts, queues or refuses it by onBusy. The result is false without an
// error if the thread has changed, and startOrAttach has to load it again.
func (s *Server) dispatchRun(ctx context.Context, in *preparedInput, thread loadedThread, plan runPlan, proposal stream.Proposal) (bool, error) {
	runInput := dispatch.RunInput(in.run, thread.agent, proposal)
	runInput.Trace = telemetry.TraceParent(ctx)
	runInput.ParkAfter, runInput.Hold, runInput.AnswersOnly = s.ParkAfter, in.props.Hold, plan.answersOnly
	runInput.After = plan.after
	result, isStarted, err := s.dispatch.StartOrOffer(ctx, runInput, dispatch.OfferTerms{OnBusy: plan.onBusy, Decisions: plan.decisions}, thread.Snapshot)
	if active, busy := dispatch.BusyWith(err); busy && plan.onBusy == runs.OnBusySteer {
		return s.steerActiveRun(ctx, in, thread, plan, proposal, active)
	}
	if err != nil {
		if dispatch.Refusal(err) != "" {
			s.commands.Withdraw(ctx, proposal)
		}
		return false, s.refusalProblem(ctx, in, thread, err)
	}
	// The workflow has counted the decisions, but a quorum needs more votes.
	if result.Open {
		return false, errVotesMissing(thread.RunID)
	}
	return isStarted, nil
}

// steerActiveRun sends the input's messages to the active run as steering, and sets in.steered. It
// returns false without an error if that run ends meanwhile: then startOrAttach loads the thread
// again. An input that changes or cuts messages cannot steer, and gets a 409 busy.
func (s *Server) steerActiveRun(ctx context.Context, in *preparedInput, thread loadedThread, plan runPlan, proposal stream.Proposal, active string) (bool, error) {
	if !thread.CanSteer(plan.input.Accepted) {
		p := problem.New(http.StatusConflict, "busy", "the input changes earlier messages, and the active run accepts only new ones")
		p.ActiveRun = stream.ShownRunID(active)
		s.commands.Withdraw(ctx, proposal)
		return false, p
	}
	steered, err := s.commands.SendSteering(ctx, stream.Run{Thread: in.run.Thread, ID: active}, proposal)
	var p *problem.Problem
	if errors.As(err, &p) && p.Code == commands.CodeNotActive {
		return false, nil
	}
	in.steered = &steered
	return true, err
}

// answeringAgent returns the agent of a run for which the client names an agent. It is the named
// one, unless that took part in a handoff: then it is the agent that the thread was handed over to.
func (s *Server) answeringAgent(tenant string, named catalog.Published, thread *snapshot.Snapshot) (catalog.Published, error) {
	name := thread.AnsweringAgent(named.Name)
	if name == named.Name {
		return named, nil
	}
	agent, err := s.Catalog.Current(thread.Handed.Referrer(tenant), name)
	if errors.Is(err, catalog.ErrUnknownAgent) { // published before it got the thread: this process has not read that yet
		return agent, fmt.Errorf("api: this process does not know agent %q of the thread yet", name)
	}
	return agent, err
}

// checkOutputState refuses, with 400, a state that is neither an object nor null if the agent has
// steps or is a program: the outputs of its steps become members of the state. It judges the state
// that the run would begin with, from the input or from the thread. It also refuses a state in
// which the member of the outputs is no object: the application uses a name that is Perdure's.
func checkOutputState(agent catalog.Published, input *agui.RunAgentInput, thread *snapshot.Snapshot) error {
	if len(agent.Steps) == 0 && agent.Workflow == "" {
		return nil
	}
	state := bytes.TrimSpace(thread.StateWith(&stream.Input{Input: *input}))
	var members map[string]json.RawMessage
	if json.Unmarshal(state, &members) != nil {
		return problem.BadRequest("invalid_input", "/state", "must be an object, because the outputs of the agent's steps are its members")
	}
	if outputs := bytes.TrimSpace(members[agents.Outputs]); len(outputs) > 0 && outputs[0] != '{' {
		return problem.BadRequest("invalid_input", "/state/"+agents.Outputs, "must not be set: it has the outputs of the agent's steps. Rename the member of your state")
	}
	return nil
}
