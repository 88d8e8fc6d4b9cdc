package decisions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// A thread whose last run ended with interrupts waits for decisions. They arrive with the next
// input, as entries of resume and as tool messages, or one by one (decision.go). This file reads
// those of an input. The API checks what needs no workflow, and writes the decisions to the log;
// the workflow decides which of them count.

// Resume returns the decisions of an input about what the thread waits for: its entries of resume,
// and the results of client tools in its messages. The former it checks and proposes to the log;
// the second result has their contents. It returns nothing if the thread's last run is active or
// waits for nothing.
//
// An invalid entry, or one that the caller may not make, refuses the whole input, before anything
// is written. Entries about unknown interrupts are ignored, with a warning in the log.
func (s *Service) Resume(ctx context.Context, input *agui.RunAgentInput, thread stream.Thread, snap *snapshot.Snapshot) ([]runs.Decision, []stream.ResumeDecision, error) {
	if !snap.Sealed || len(snap.Interrupts)+len(snap.ClientCalls) == 0 {
		return nil, nil, nil
	}
	interruptedRun := stream.Run{Thread: thread, ID: snap.RunID}
	entries, unknown, err := s.readResume(ctx, input.Resume, thread, snap)
	if err != nil {
		return nil, nil, err
	}
	var decisions []runs.Decision
	var contents []stream.ResumeDecision
	for _, e := range entries {
		d, err := s.writeProposal(ctx, interruptedRun, e.interrupt, e.request, request.ChannelInput)
		if err != nil {
			return nil, nil, err
		}
		decisions, contents = append(decisions, d), append(contents, resumeDecisionOf(e.interrupt, e.request))
	}
	if unknown > 0 {
		s.finder.Logger.WarnContext(ctx, "the input resolves unknown interrupts, which are ignored", "count", unknown)
	}
	return append(decisions, toolResults(input.Messages, snap)...), contents, nil
}

// openEntry is a valid entry of resume, with its open interrupt.
type openEntry struct {
	interrupt *agui.Interrupt
	request   Request
}

// readResume converts and checks the entries of resume, and returns those about open interrupts.
// One invalid entry, or two about the same interrupt, is an error. unknown counts entries about
// interrupts that are not open.
func (s *Service) readResume(ctx context.Context, resume []agui.ResumeEntry, thread stream.Thread, snap *snapshot.Snapshot) (open []openEntry, unknown int, err error) {
	decided := map[string]bool{}
	for i, entry := range resume {
		pointer := fmt.Sprintf("/resume/%d", i)
		interrupt := interruptByID(snap.Interrupts, entry.InterruptID)
		if interrupt == nil {
			unknown++
			continue
		}
		if decided[interrupt.ID] {
			return nil, 0, InvalidAnswer(pointer+"/interruptId", "is decided twice")
		}
		decided[interrupt.ID] = true
		rule, err := s.authorize(ctx, thread, interrupt, pointer+"/payload")
		if err != nil {
			return nil, 0, err
		}
		req, err := requestOf(interrupt, entry, pointer)
		if err != nil {
			return nil, 0, err
		}
		if req, err = req.normalize(snap, interrupt, pointer+"/payload"); err != nil {
			return nil, 0, err
		}
		if err := s.checkDecision(ctx, rule, snap, interrupt, req, pointer+"/payload"); err != nil {
			return nil, 0, err
		}
		open = append(open, openEntry{interrupt, req})
	}
	return open, unknown, nil
}

// toolResults returns a decision for each client tool result in the messages: the first new tool
// message for each call of the last message with calls. The workflow ignores results that the
// thread does not wait for. The contents stay in the input, so the decisions have no proposal.
func toolResults(messages []agui.Message, snap *snapshot.Snapshot) []runs.Decision {
	open := map[string]bool{}
	if i := lastCallsIndex(snap); i >= 0 {
		for _, c := range snap.Entries[i].Message.ToolCalls {
			open[c.ID] = true
		}
	}
	var decisions []runs.Decision
	for _, m := range messages {
		if m.Role != agui.RoleTool || !open[m.ToolCallID] || hasMessage(snap, m.ID) {
			continue
		}
		delete(open, m.ToolCallID)
		decisions = append(decisions, runs.Decision{CallID: m.ToolCallID, Kind: runs.DecisionToolResult, Digest: stream.ResultDigest(&m)})
	}
	return decisions
}

// decisionOf converts a request to the form of the log. Arguments and answers are compacted, so
// that white space makes no other decision. An answer to an approval becomes the tool message that
// replaces the call's result.
func decisionOf(interrupt *agui.Interrupt, req Request) (*stream.Decision, error) {
	source, err := stream.QuestionSourceOf(*interrupt)
	if err != nil {
		return nil, err
	}
	d := &stream.Decision{CallID: stream.CallOf(*interrupt), Kind: req.Decision, Question: source.Number, Reason: req.Reason, Remember: string(req.Remember)}
	var b bytes.Buffer
	switch {
	case req.Decision == string(runs.DecisionEdit):
		if err := json.Compact(&b, req.Args); err != nil {
			return nil, fmt.Errorf("api: arguments: %w", err)
		}
		d.Args = b.Bytes()
	case req.Decision == string(runs.DecisionAnswer) && source.Number > 0:
		if err := json.Compact(&b, req.Content); err != nil {
			return nil, fmt.Errorf("api: content: %w", err)
		}
		d.Content = b.Bytes()
	case req.Decision == string(runs.DecisionAnswer):
		var text string
		if err := json.Unmarshal(req.Content, &text); err != nil {
			return nil, fmt.Errorf("api: content: %w", err)
		}
		d.Result = &agui.Message{ID: d.CallID, Role: agui.RoleTool, ToolCallID: d.CallID, Content: agui.TextContent(text)}
	}
	return d, nil
}

// writeProposal writes the caller's decision about an interrupt to the log, and returns it in the
// form of the workflow: digests, and the sequence of the proposal. The same decision of the same
// caller is the same proposal. channel is recorded for the audit. The proposal alone has no effect.
func (s *Service) writeProposal(ctx context.Context, run stream.Run, interrupt *agui.Interrupt, req Request, channel string) (runs.Decision, error) {
	content, err := decisionOf(interrupt, req)
	if err != nil {
		return runs.Decision{}, err
	}
	// The workflow gets digests instead of contents, because its history must stay small.
	d := runs.Decision{
		CallID:   content.CallID,
		Kind:     runs.DecisionKind(req.Decision),
		Question: content.Question,
		By:       voterID(request.Caller(ctx)),
		Remember: runs.RememberScope(req.Remember),
		Allowed:  req.allowed,
	}
	d.ArgsDigest = argsDigest(content)
	// The digest comes first: content.By, content.Channel and content.Issuer must not be part of it,
	// so that a decision by a link and a direct one of the same person are one vote.
	digest, err := digestOf(ctx, content)
	if err != nil {
		return d, err
	}
	content.By, content.Channel = request.Requester(ctx), channel
	if link, ok := request.LinkOf(ctx); ok {
		content.Issuer = link.Issuer.Subject
	}
	proposal, err := s.finder.Log.ProposeDecision(ctx, run, digest, content)
	d.Proposal, d.Digest = proposal.Seq, runs.ShortDigest(proposal.Digest)
	return d, err
}

// argsDigest returns the digest of the arguments of an edit, or of the answer to a question: votes with the
// same digest are for the same. "" = the decision has neither. Clients write the members of equal answers
// in different orders; voters for an edit take over the arguments of the first one.
func argsDigest(d *stream.Decision) string {
	switch {
	case len(d.Args) > 0:
		return runs.DigestArgs(string(d.Args))
	case len(d.Content) > 0:
		return runs.CanonicalDigest(string(d.Content))
	}
	return ""
}

// LateDecisions returns the entries of resume about interrupts that are resolved already, so that
// the run can show the decision that stands instead. An invalid entry is returned without content.
func LateDecisions(resume []agui.ResumeEntry, snap *snapshot.Snapshot) []stream.ResumeDecision {
	var late []stream.ResumeDecision
	for _, entry := range resume {
		if interrupt := interruptByID(snap.Answered, entry.InterruptID); interrupt != nil {
			late = append(late, lateDecisionOn(interrupt, entry, snap))
		}
	}
	return late
}

// lateDecisionOn returns an entry of resume as a decision about an interrupt. An invalid entry has
// no content.
func lateDecisionOn(interrupt *agui.Interrupt, entry agui.ResumeEntry, snap *snapshot.Snapshot) stream.ResumeDecision {
	req, err := requestOf(interrupt, entry, "")
	if err != nil {
		return stream.ResumeDecision{InterruptID: interrupt.ID}
	}
	if req, err = req.normalize(snap, interrupt, ""); err != nil {
		return stream.ResumeDecision{InterruptID: interrupt.ID}
	}
	return resumeDecisionOf(interrupt, req)
}

// resumeDecisionOf returns a request in the form of the log. An invalid request has no decision.
func resumeDecisionOf(interrupt *agui.Interrupt, req Request) stream.ResumeDecision {
	decision := stream.ResumeDecision{InterruptID: interrupt.ID}
	if d, err := decisionOf(interrupt, req); err == nil {
		decision.Decision = *d
	}
	return decision
}

// digestOf returns the digest that identifies a decision, by its content and the caller's tenant
// and subject. The same decision of one person over two channels, or with other roles, is the same;
// the decisions of two persons differ. content must not have By or Channel yet.
func digestOf(ctx context.Context, content *stream.Decision) ([sha256.Size]byte, error) {
	compared := *content
	if principal, ok := auth.From(ctx); ok {
		compared.By = &auth.Principal{Tenant: principal.Tenant, Subject: principal.Subject}
	}
	body, err := json.Marshal(compared)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("api: encode decision: %w", err)
	}
	return sha256.Sum256(body), nil
}

// WithoutRepeatedAnswers returns an input's messages without tool messages that are not new
// results. Some clients send one next to an answer in resume, for a call with an interrupt: it
// repeats the answer. Unless the input replaces the conversation, results of calls that have
// another result are left out too. Messages that the thread has stay.
func WithoutRepeatedAnswers(messages []agui.Message, snap *snapshot.Snapshot, history snapshot.History) []agui.Message {
	interrupts := slices.Concat(snap.Interrupts, snap.Answered)
	return slices.DeleteFunc(slices.Clone(messages), func(m agui.Message) bool {
		if m.Role != agui.RoleTool || hasMessage(snap, m.ID) {
			return false
		}
		return history != snapshot.HistoryReplace && isRepeatedResult(m, snap) ||
			slices.ContainsFunc(interrupts, func(q agui.Interrupt) bool { return q.ToolCallID == m.ToolCallID })
	})
}

// isRepeatedResult reports whether a message is a new result of a call that already has one, which
// the server recorded. A result that a client's input has added does not count.
func isRepeatedResult(m agui.Message, snap *snapshot.Snapshot) bool {
	if m.Role != agui.RoleTool || hasMessage(snap, m.ID) {
		return false
	}
	e := resultEntry(snap, m.ToolCallID)
	return e != nil && e.Sent == ""
}

// HasOnlyLateDecisions reports whether all decisions of an input come too late: all its entries of
// resume are about resolved interrupts or, without entries, its only new messages are results of
// calls that have one. The run of such an input shows the decisions that stand.
func HasOnlyLateDecisions(in *agui.RunAgentInput, snap *snapshot.Snapshot) bool {
	if len(in.Resume) > 0 {
		return !slices.ContainsFunc(in.Resume, func(entry agui.ResumeEntry) bool {
			return !slices.ContainsFunc(snap.Answered, func(q agui.Interrupt) bool { return q.ID == entry.InterruptID })
		})
	}
	isRepeated := func(m agui.Message) bool { return isRepeatedResult(m, snap) }
	return slices.ContainsFunc(in.Messages, isRepeated) &&
		!slices.ContainsFunc(in.Messages, func(m agui.Message) bool { return !hasMessage(snap, m.ID) && !isRepeated(m) })
}
