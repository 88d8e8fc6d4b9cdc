package stream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

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
	// By is who said it, Channel how it came: agui, rest, ws, batch or link. When is the record's time.
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

// Remembered says that calls of a tool on this thread need not be asked for any more, as long as the rule that
// asked says the same.
type Remembered struct {
	Tool string `json:"tool"`
	Rule string `json:"rule"` // its digest
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

// cancelRequest is the note of a KindCancel record.
type cancelRequest struct {
	Reason string `json:"reason,omitempty"`
}

// RequestCancel keeps the wish to cancel a run, once: the first activity of the run looks for it, so
// a cancel that comes before the start is not lost. It reports whether this was the first.
func (l *Log) RequestCancel(ctx context.Context, run Run, reason string) (first bool, err error) {
	body, err := json.Marshal(cancelRequest{Reason: reason})
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
