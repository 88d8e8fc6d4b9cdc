package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// saysNoState tells whether the client leaves the state to the thread: clients that have none send {}.
func (in *Input) saysNoState() bool {
	state := bytes.TrimSpace(in.Input.State)
	return len(state) == 0 || bytes.Equal(state, emptyState)
}

// stateOn is the state that a run with this input begins with, on a thread that has had one before.
func (in *Input) stateOn(before json.RawMessage, keeps string) json.RawMessage {
	if in.saysNoState() {
		return before
	}
	var said, had map[string]json.RawMessage
	if keeps == "" || json.Unmarshal(in.Input.State, &said) != nil || said == nil || json.Unmarshal(before, &had) != nil {
		return in.Input.State // what is no object has no such member
	}
	if bytes.Equal(compact(said[keeps]), compact(had[keeps])) {
		return in.Input.State
	}
	if said[keeps] = had[keeps]; had[keeps] == nil {
		delete(said, keeps)
	}
	state, err := json.Marshal(said)
	if err != nil {
		return in.Input.State // cannot be: all of it was read
	}
	return state
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it was read; of nothing it is nothing
	return b.Bytes()
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
	rec, err := l.at(ctx, seq)
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
	rec, err := l.at(ctx, seq)
	if err != nil || rec == nil || rec.thread != l.threadSubject(thread) || !rec.Lane.IsProposal() {
		return nil, err
	}
	var d Decision
	if err := rec.Result(ctx, &d); err != nil || d.CallID == "" { // without a call it is the input of a run
		return nil, err
	}
	return &d, nil
}

// IsShown tells whether a thread, as far as it is reduced here, shows that its workflow has accepted a decision: it does
// not wait for it.
func (d *Decision) IsShown(thread *Reduction) bool {
	about := Decided{CallID: d.CallID, Question: d.Question}
	return !slices.Contains(thread.Waits, d.CallID) && !slices.ContainsFunc(thread.Interrupts, about.answers)
}

// IsCarriedOut tells whether a thread that shows a client's result has the results of all calls that were made together
// with it. A thread whose last run has ended will get no more of them.
func (d *Decision) IsCarriedOut(thread *Reduction) bool {
	if !d.IsShown(thread) {
		return false
	}
	if d.Verdict != verdictResult || thread.Sealed {
		return true
	}
	answered := map[string]bool{}
	var calls []agui.ToolCall
	for _, e := range thread.Entries {
		answered[e.Message.ToolCallID] = e.Message.Role == agui.RoleTool
		if slices.ContainsFunc(e.Message.ToolCalls, func(c agui.ToolCall) bool { return c.ID == d.CallID }) {
			calls = e.Message.ToolCalls
		}
	}
	return !slices.ContainsFunc(calls, func(c agui.ToolCall) bool { return !answered[c.ID] })
}

// propose writes something from outside once: the same again is the same record.
func (l *Log) propose(ctx context.Context, run Run, digest [32]byte, proposed any) (Proposal, error) {
	body, err := json.Marshal(proposed)
	if err != nil {
		return Proposal{}, fmt.Errorf("stream: encode proposal: %w", err)
	}
	p := Proposal{Digest: hex.EncodeToString(digest[:])}
	subject := l.laneSubject(run, Lane(proposalPrefix+p.Digest[:32]))
	if body, err = l.shrink(ctx, subject, body); err != nil {
		return Proposal{}, err
	}
	s := stamp{kind: KindProposal, writer: newWriter("")}
	p.Seq, err = l.append(ctx, message(subject, s, nil, body), s, 0)
	if !errors.Is(err, ErrFenced) {
		return p, err
	}
	first, err := l.last(ctx, subject) // the same was proposed before
	if err != nil {
		return Proposal{}, err
	}
	p.Seq = lastSeq(first)
	return p, nil
}

// Input returns a proposed input.
func (l *Log) Input(ctx context.Context, seq uint64) (*Input, error) {
	return (&fold{log: l}).input(ctx, seq)
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
	subject := l.laneSubject(run, LaneControl)
	s := stamp{kind: KindCancel, writer: newWriter("")}
	_, err = l.append(ctx, message(subject, s, nil, body), s, 0)
	if errors.Is(err, ErrFenced) {
		return false, nil
	}
	return err == nil, err
}

// CancelRequested tells whether somebody asked to cancel the run.
func (l *Log) CancelRequested(ctx context.Context, run Run) (bool, error) {
	r, err := l.last(ctx, l.laneSubject(run, LaneControl))
	return r != nil, err
}

// CancelOf returns the request to cancel a run; nil = there is none.
func (l *Log) CancelOf(ctx context.Context, run Run) (*Cancel, error) {
	return l.cancelUnder(ctx, l.laneSubject(run, LaneControl))
}

func (l *Log) cancelUnder(ctx context.Context, subject string) (*Cancel, error) {
	rec, err := l.last(ctx, subject)
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
