package stream

import (
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

// Input is a run's input as the log has it: the client's RunAgentInput without its messages, and
// what these mean for the thread's conversation.
type Input struct {
	Input    agui.RunAgentInput `json:"input"`
	Accepted Acceptance         `json:"accepted"`
	// Requester is who asked for the run.
	Requester *auth.Principal `json:"requester,omitempty"`
	// Late are answers to what was decided before the input came: they change nothing.
	Late []LateAnswer `json:"late,omitempty"`
	// Answers are those to what was open when the input came. In the same moment others may decide otherwise.
	Answers []LateAnswer `json:"answers,omitempty"`
}

// LateAnswer is an answer to a question, which may have been decided without it.
type LateAnswer struct {
	InterruptID string   `json:"interruptId"`
	Said        Decision `json:"said"`
}

// Proposal is a reference to something from outside that the log holds and nobody accepted yet.
type Proposal struct {
	Seq    uint64 `json:"seq"`
	Digest string `json:"digest"`
}

// ProposeInput writes a run's input once: the same input again is the same record. It decides
// nothing and no reader sees it; the workflow that begins the run accepts it. An input that was refused and is late by
// the time that it comes again is another record: it has more to say.
func (l *Log) ProposeInput(ctx context.Context, run Run, digest [32]byte, in *Input) (Proposal, error) {
	if len(in.Late) == 0 {
		return l.propose(ctx, run, digest, in)
	}
	p, err := l.propose(ctx, run, sha256.Sum256(append(digest[:], "late"...)), in)
	p.Digest = hex.EncodeToString(digest[:])
	return p, err
}

// Decision is what somebody said about a tool call that waits: beside the verdict, which the workflow
// has too, the content.
type Decision struct {
	CallID  string `json:"call"`
	Verdict string `json:"verdict"`
	// Args are the arguments that the call is to be made with, if others than the model's.
	Args json.RawMessage `json:"args,omitempty"`
	// Result stands for the call's, as a tool message.
	Result *agui.Message `json:"result,omitempty"`
	// Question is which question of the call this is about, from 1; 0 = whether it may be made. Content is the
	// answer to it.
	Question int             `json:"question,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	// Remember is the scope of an approval that covers further calls.
	Remember string `json:"remember,omitempty"`
	// By is the caller, Channel what the client says of itself: see docs/inbox.md. When is the record's time.
	By      *auth.Principal `json:"by,omitempty"`
	Channel string          `json:"channel,omitempty"`
}

// Decided tells which decision about a call was carried out.
type Decided struct {
	CallID  string `json:"call"`
	Verdict string `json:"verdict"`
	// Question is that of the Decision.
	Question int `json:"question,omitempty"`
	// Digest and Proposal are those of what was said, if somebody said something.
	Digest   string `json:"digest,omitempty"`
	Proposal uint64 `json:"proposal,omitempty"`
	// Votes are those of the people who approved before, where one was not enough.
	Votes []Vote `json:"votes,omitempty"`
	// Remembered is set if it is to be remembered for further calls.
	Remembered *Remembered `json:"remembered,omitempty"`
}

// Vote refers to what somebody said who approved.
type Vote struct {
	Digest   string `json:"digest"`
	Proposal uint64 `json:"proposal,omitempty"`
}

// Remembered is an approval that covers further calls of a tool on the thread, as long as the rule that asked stays the
// same.
type Remembered struct {
	Tool string `json:"tool"`
	Rule string `json:"rule"` // digest
	// Args is the digest of the canonical arguments that it covers; "" = all.
	Args string `json:"args,omitempty"`
}

// ProposeDecision writes what somebody decided about a call of a run, once.
func (l *Log) ProposeDecision(ctx context.Context, run Run, digest [32]byte, d *Decision) (Proposal, error) {
	return l.propose(ctx, run, digest, d)
}

// Decision returns a proposed decision.
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

// DecisionIn returns the decision that a thread's log holds at a sequence; nil = the record there is not one.
func (l *Log) DecisionIn(ctx context.Context, thread Thread, seq uint64) (*Decision, error) {
	if seq == 0 {
		return nil, nil
	}
	rec, err := l.At(ctx, seq)
	if err != nil || rec == nil || rec.thread != l.ThreadSubject(thread) || !rec.Lane.IsProposal() {
		return nil, err
	}
	var d Decision
	if err := rec.Result(ctx, &d); err != nil || d.CallID == "" { // without a call it is the input of a run
		return nil, err
	}
	return &d, nil
}

// propose writes something from outside once: the same again is the same record.
func (l *Log) propose(ctx context.Context, run Run, digest [32]byte, proposed any) (Proposal, error) {
	body, err := json.Marshal(proposed)
	if err != nil {
		return Proposal{}, fmt.Errorf("stream: encode proposal: %w", err)
	}
	p := Proposal{Digest: hex.EncodeToString(digest[:])}
	subject := l.LaneSubject(run, Lane(proposalPrefix+p.Digest[:32]))
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return Proposal{}, err
	}
	s := stamp{kind: KindProposal, writer: newWriter("")}
	p.Seq, err = l.append(ctx, message(subject, s, nil, body), s, 0)
	if !errors.Is(err, ErrFenced) {
		return p, err
	}
	first, err := l.Last(ctx, subject) // the same was proposed before
	if err != nil {
		return Proposal{}, err
	}
	p.Seq = lastSeq(first)
	return p, nil
}

// Input returns a proposed input.
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

// Cancel is a request to cancel a run: the note of a KindCancel record.
type Cancel struct {
	Reason string `json:"reason,omitempty"`
	// By is the caller; nil = it did not say who it is, or the server cancels the run itself.
	By *auth.Principal `json:"by,omitempty"`
	// At is the record's time.
	At time.Time `json:"at,omitzero"`
}

// RequestCancel keeps a request to cancel a run, once: the first activity of the run looks for it, so
// a cancel that comes before the start is not lost. It reports whether this was the first.
func (l *Log) RequestCancel(ctx context.Context, run Run, c Cancel) (first bool, err error) {
	c.At = time.Time{}
	body, err := json.Marshal(c)
	if err != nil {
		return false, fmt.Errorf("stream: encode: %w", err)
	}
	subject := l.LaneSubject(run, LaneControl)
	s := stamp{kind: KindCancel, writer: newWriter("")}
	_, err = l.append(ctx, message(subject, s, nil, body), s, 0)
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, err
}

// CancelRequested tells whether somebody asked to cancel the run.
func (l *Log) CancelRequested(ctx context.Context, run Run) (bool, error) {
	r, err := l.Last(ctx, l.LaneSubject(run, LaneControl))
	return r != nil, err
}

// CancelOf returns the request to cancel a run; nil = there is none.
func (l *Log) CancelOf(ctx context.Context, run Run) (*Cancel, error) {
	return l.cancelUnder(ctx, l.LaneSubject(run, LaneControl))
}

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

// VerdictResult is what a result of the client's is called among decisions.
const VerdictResult = "result"

// ClientResult is what a client says came of a tool call of its own, as a decision about the call. However
// it came, the same result has the same digest: it is over the call, the content and the error.
func ClientResult(m *agui.Message) (*Decision, [32]byte) {
	said := agui.Message{ID: m.ToolCallID, Role: agui.RoleTool, ToolCallID: m.ToolCallID, Content: m.Content, Error: m.Error}
	return &Decision{CallID: m.ToolCallID, Verdict: VerdictResult, Result: &said}, said.Digest()
}

// ResultDigest is that digest as decisions have it.
func ResultDigest(m *agui.Message) string {
	_, digest := ClientResult(m)
	return fmt.Sprintf("%x", digest)
}

// Cancel returns the request to cancel the record's run; nil = there is none.
func (r *Record) Cancel(ctx context.Context) (*Cancel, error) {
	return r.log.cancelUnder(ctx, r.thread+"."+r.run+"."+string(LaneControl))
}
