package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
)

// This file has what clients propose to a run: its input, messages that steer it, decisions about
// its interrupts, and the request to cancel it. The API writes the proposal to the log before it
// calls the workflow, which gets only the sequence and the digest (a Proposal). So Temporal's
// history has no content. A client that repeats a request gets the same proposal: an input or a
// tool result is the only record of a lane that its digest names, and the decisions of one caller
// about one interrupt share a lane, whose last record is the caller's last word.

// Input is the input of a run: the client's RunAgentInput without messages, and what the messages
// mean for the conversation. It is the result of a proposal. For messages that steer an active run,
// Input is empty and Accepted has the messages.
type Input struct {
	Input    agui.RunAgentInput `json:"input"`
	Accepted Acceptance         `json:"accepted"`
	// Requester is the caller that started the run.
	Requester *auth.Principal `json:"requester,omitempty"`
	// Sender is the caller that sent an input with decisions only, whose run keeps the requester of
	// the run before; nil = the requester, or the input changes nothing that models receive.
	Sender *auth.Principal `json:"sender,omitempty"`
	// Event is the event that started the run; nil = none did.
	Event *TriggerEvent `json:"event,omitempty"`
	// LateDecisions are about interrupts that were decided before the input came. They change
	// nothing; the client is told the decisions that were carried out (Store.LateEvents).
	LateDecisions []ResumeDecision `json:"lateDecisions,omitempty"`
	// ResumeDecisions are about interrupts that were open when the input came. A concurrent
	// decision may still win, and then they are late too.
	ResumeDecisions []ResumeDecision `json:"resumeDecisions,omitempty"`
	// Task is the user message on which a pipeline continues to work in a fork, if the input has no
	// new message; nil = the input has it, or the conversation has none.
	Task *agui.Message `json:"task,omitempty"`
}

// ResumeDecision is a decision of a client, made in resume. Another decision about the interrupt
// may have been carried out.
type ResumeDecision struct {
	InterruptID string   `json:"interruptId"`
	Decision    Decision `json:"decision"`
}

// Proposal refers to a proposal record, which a workflow accepts or ignores. Seq is its sequence,
// Digest the digest of its decoded content in hex, by which a workflow recognizes a repetition.
type Proposal struct {
	Seq    uint64 `json:"seq"`
	Digest string `json:"digest"`
}

// ProposeInput writes the input of a run once: for an input with the same digest it returns the
// existing proposal. No reader is shown it, and it changes nothing until the workflow of the run
// accepts it.
//
// An input that was refused before, and whose decisions are late now, becomes another record under
// another lane, with the same Proposal.Digest.
func (l *Log) ProposeInput(ctx context.Context, run Run, digest [32]byte, in *Input) (Proposal, error) {
	if len(in.LateDecisions) == 0 {
		return l.propose(ctx, run, digest, in, false)
	}
	p, err := l.propose(ctx, run, sha256.Sum256(append(digest[:], "late"...)), in, false)
	p.Digest = hex.EncodeToString(digest[:])
	return p, err
}

// ProposeFirstInput is ProposeInput for a thread without records. The input becomes the thread's
// first record, and its requester the owner of the thread. The error is ErrThreadExists if another
// record has begun the thread.
func (l *Log) ProposeFirstInput(ctx context.Context, run Run, digest [32]byte, in *Input) (Proposal, error) {
	return l.propose(ctx, run, digest, in, true)
}

// Decision is a client's decision about an interrupt of a tool call, with its content. The workflow
// knows only the kind and the sequence of the proposal. docs/concepts/terms.md lists the kinds.
type Decision struct {
	CallID string `json:"call"`
	Kind   string `json:"kind"`
	// Args are the edited arguments; nil = those of the model.
	Args json.RawMessage `json:"args,omitempty"`
	// Result replaces the result of the call, as a tool message.
	Result *agui.Message `json:"result,omitempty"`
	// Question is the number of the call's question, from 1; 0 = the decision is about the call
	// itself. Content is the answer.
	Question int             `json:"question,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	// Remember is the scope of an approval that covers further calls; "" = it covers this call
	// only.
	Remember string `json:"remember,omitempty"`
	// By is the caller; nil = an anonymous one. Channel is the client's description of itself
	// (docs/guides/inbox.md). The record has the time.
	By      *auth.Principal `json:"by,omitempty"`
	Channel string          `json:"channel,omitempty"`
	// Issuer is the subject that created the link by which the decision was made; "" = there was no
	// link, or an anonymous caller created it.
	Issuer string `json:"issuer,omitempty"`
}

// HasContent reports whether the decision brings content of its caller into the conversation.
func (d *Decision) HasContent() bool {
	return len(d.Args) > 0 || d.Result != nil || len(d.Content) > 0 || d.Reason != ""
}

// Decided tells which decision was carried out about a tool call. It is part of the Result of the
// step that carried it out, and refers to the Decision by its proposal.
type Decided struct {
	CallID string `json:"call"`
	Kind   string `json:"kind"`
	// Question is the decision's: the number of the call's question, 0 = the call itself.
	Question int `json:"question,omitempty"`
	// Digest and Proposal are those of the decision's Proposal; both are empty if no caller
	// decided, for instance if the interrupt expired.
	Digest   string `json:"digest,omitempty"`
	Proposal uint64 `json:"proposal,omitempty"`
	// Votes are the earlier votes of a quorum.
	Votes []Vote `json:"votes,omitempty"`
	// Remembered is set if the approval covers further calls.
	Remembered *Remembered `json:"remembered,omitempty"`
}

// Vote refers to the decision of one approver of a quorum.
type Vote struct {
	Digest   string `json:"digest"`
	Proposal uint64 `json:"proposal,omitempty"`
}

// Remembered is an approval that covers further calls of a tool in the thread, as long as the rule
// of the agent's revision is the same.
type Remembered struct {
	Tool string `json:"tool"`
	Rule string `json:"rule"` // digest of the rule that asked for the approval
	// Args is the digest of the canonical arguments that it covers; "" = all.
	Args string `json:"args,omitempty"`
}

// ProposeResult writes the result of a client tool call of a run once: for the same digest it
// returns the existing proposal, also to another caller.
func (l *Log) ProposeResult(ctx context.Context, run Run, digest [32]byte, d *Decision) (Proposal, error) {
	return l.propose(ctx, run, digest, d, false)
}

// ProposeDecision writes a caller's decision about an interrupt, d.By and d.CallID. If the last
// decision of this caller about this interrupt has the same digest, it returns that proposal. A
// caller who returns to an earlier decision gets a new one, with its own time and channel.
func (l *Log) ProposeDecision(ctx context.Context, run Run, digest [32]byte, d *Decision) (Proposal, error) {
	p := Proposal{Digest: hex.EncodeToString(digest[:])}
	body, err := encodeDecision(d)
	if err != nil {
		return Proposal{}, fmt.Errorf("stream: encode decision: %w", err)
	}
	subject := l.LaneSubject(run, decisionLane(d))
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return Proposal{}, err
	}
	// The first decision of a caller, which is the common case, needs one round trip.
	for after := uint64(0); ; {
		s := stamp{kind: KindProposal, step: p.Digest, writer: newWriter("")}
		msg, err := l.message(ctx, subject, s, nil, body)
		if err != nil {
			return Proposal{}, err
		}
		p.Seq, err = l.append(ctx, msg, s, after)
		if !errors.Is(err, ErrFenced) {
			return p, err
		}
		last, err := l.Last(ctx, subject) // the caller has decided before, or decides concurrently
		if err != nil {
			return Proposal{}, err
		}
		if last != nil && last.Step == p.Digest {
			p.Seq = last.Seq
			return p, nil
		}
		after = lastSeq(last)
	}
}

// encodeDecision returns the JSON of a decision. It does not escape <, > and & in the content: models read it,
// and it would be up to six times as long.
func encodeDecision(d *Decision) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// decisionLane returns the lane of the decisions of one caller about one interrupt. All anonymous
// callers of a tenant are one caller.
func decisionLane(d *Decision) Lane {
	var principal auth.Principal
	if d.By != nil {
		principal = *d.By
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "decision\x00%s\x00%s\x00%s\x00%d", principal.Tenant, principal.Subject, d.CallID, d.Question))
	return Lane(proposalPrefix + hex.EncodeToString(sum[:16]))
}

// Decision returns the decision of the proposal with a sequence. The error is ErrLogLost if the log
// lacks that record.
func (l *Log) Decision(ctx context.Context, seq uint64) (*Decision, error) {
	rec, err := l.At(ctx, seq)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("%w: decision %d", ErrLogLost, seq)
	}
	var d Decision
	if err := rec.Result(ctx, &d); err != nil {
		return nil, err
	}
	return &d, nil
}

// ProposedDecision returns the proposal record with a sequence, and its decision. Both are nil if
// the record is no proposal of a decision, or does not exist: unlike for Decision, the sequence may
// come from a client. The caller checks the record's tenant or thread.
func (l *Log) ProposedDecision(ctx context.Context, seq uint64) (*Record, *Decision, error) {
	if seq == 0 {
		return nil, nil, nil
	}
	rec, err := l.At(ctx, seq)
	if err != nil || rec == nil || !rec.Lane.IsProposal() {
		return nil, nil, err
	}
	d := new(Decision)
	if err := rec.Result(ctx, d); err != nil || d.CallID == "" { // the input of a run has no call
		return nil, nil, err
	}
	return rec, d, nil
}

// propose writes a proposal to the lane of its digest. If the lane has a proposal already that was not
// withdrawn, propose returns that one: it has the same content. A first proposal is written
// only to a thread without records; the error is ErrThreadExists if the thread has others.
func (l *Log) propose(ctx context.Context, run Run, digest [32]byte, proposed any, isFirst bool) (Proposal, error) {
	body, err := json.Marshal(proposed)
	if err != nil {
		return Proposal{}, fmt.Errorf("stream: encode proposal: %w", err)
	}
	p := Proposal{Digest: hex.EncodeToString(digest[:])}
	lane := Lane(proposalPrefix + p.Digest[:32])
	subject := l.LaneSubject(run, lane)
	if isFirst {
		if err := l.beginKey(ctx, run.Thread); err != nil {
			return Proposal{}, err
		}
	}
	for after := uint64(0); ; {
		stored, err := l.shrinkProposal(ctx, subject, after, body)
		if err != nil {
			return Proposal{}, err
		}
		s := stamp{kind: KindProposal, writer: newWriter("")}
		msg, err := l.message(ctx, subject, s, nil, stored)
		if err != nil {
			return Proposal{}, err
		}
		if isFirst {
			var first *Record
			p.Seq, first, err = l.beginThread(ctx, run.Thread, msg)
			if first != nil && (first.run != Token(run.ID) || first.Lane != lane) {
				return Proposal{}, ErrThreadExists
			}
			return p, err
		}
		p.Seq, err = l.append(ctx, msg, s, after)
		if !errors.Is(err, ErrFenced) {
			return p, err
		}
		// The lane has the same proposal already, or had it.
		if p.Seq, after, err = l.join(ctx, subject); err != nil || p.Seq != 0 {
			return p, err
		}
	}
}

// Input returns the input of the proposal with a sequence. The error is ErrLogLost if the log lacks
// that record.
func (l *Log) Input(ctx context.Context, seq uint64) (*Input, error) {
	rec, err := l.At(ctx, seq)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("%w: input %d", ErrLogLost, seq)
	}
	var in Input
	if err := rec.Result(ctx, &in); err != nil {
		return nil, err
	}
	return &in, nil
}

// Cancel is a request to cancel a run: the result of a KindCancel record.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
	// By is the caller; nil = an anonymous caller, or the server itself.
	By *auth.Principal `json:"by,omitempty"`
	// At is the record's time. RequestCancel ignores it, CancelOf sets it.
	At time.Time `json:"at,omitzero"`
}

// RequestCancel writes a request to cancel a run, once, and reports whether it was the first. A
// second request writes nothing, so the reason and the caller of the first one stand. The first
// activity of the run looks for the record, so a cancel before the run's start is not lost.
func (l *Log) RequestCancel(ctx context.Context, run Run, c Cancel) (first bool, err error) {
	c.At = time.Time{}
	body, err := json.Marshal(c)
	if err != nil {
		return false, fmt.Errorf("stream: encode: %w", err)
	}
	subject := l.LaneSubject(run, LaneControl)
	s := stamp{kind: KindCancel, writer: newWriter("")}
	msg, err := l.message(ctx, subject, s, nil, body)
	if err != nil {
		return false, err
	}
	_, err = l.append(ctx, msg, s, 0)
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, err
}

// CancelRequested reports whether the log has a request to cancel the run.
func (l *Log) CancelRequested(ctx context.Context, run Run) (bool, error) {
	r, err := l.Last(ctx, l.LaneSubject(run, LaneControl))
	return r != nil, err
}

// CancelOf returns the request to cancel a run; nil = there is none.
func (l *Log) CancelOf(ctx context.Context, run Run) (*Cancel, error) {
	return l.cancelUnder(ctx, l.LaneSubject(run, LaneControl))
}

// cancelUnder returns the request on the control lane with this subject; nil = there is none.
func (l *Log) cancelUnder(ctx context.Context, subject string) (*Cancel, error) {
	rec, err := l.Last(ctx, subject)
	if rec == nil || err != nil {
		return nil, err
	}
	c := new(Cancel)
	if err := rec.Result(ctx, c); err != nil {
		return nil, err
	}
	c.At = rec.Time
	return c, nil
}

// DecisionToolResult is the kind of a decision that carries the result of a client tool call.
const DecisionToolResult = "result"

// ClientResult returns the result of a client tool call as a decision, with its digest over the
// call's ID, the content and the error. The message's own ID is not part of it, so the same result
// sent twice is one proposal.
func ClientResult(m *agui.Message) (*Decision, [32]byte) {
	message := agui.Message{ID: m.ToolCallID, Role: agui.RoleTool, ToolCallID: m.ToolCallID, Content: m.Content, Error: m.Error}
	return &Decision{CallID: m.ToolCallID, Kind: DecisionToolResult, Result: &message}, message.Digest()
}

// ResultDigest returns the digest of ClientResult in hex.
func ResultDigest(m *agui.Message) string {
	_, digest := ClientResult(m)
	return fmt.Sprintf("%x", digest)
}

// Cancel returns the request to cancel the record's run; nil = there is none.
func (r *Record) Cancel(ctx context.Context) (*Cancel, error) {
	return r.log.cancelUnder(ctx, r.thread+"."+r.run+"."+string(LaneControl))
}
