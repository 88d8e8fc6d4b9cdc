package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
)

// TreePosition is a position in a step tree, with what the interpreter has to know of earlier
// steps. The zero TreePosition is the beginning of the tree.
//
// A position is part of histories and records, so it is small (names of steps, counts and times),
// has no content, and its JSON must stay compatible. Advance does not change its argument: each
// Advanced has a position of its own.
type TreePosition struct {
	// Branch is the path to the position's branch, from the run's agent on; empty = the whole tree.
	Branch []BranchRef `json:"branch,omitempty"`
	// Frames are the steps that are open, the outermost first.
	Frames []Frame `json:"frames,omitempty"`
	// Undo are the paths of finished steps with a compensation, in the order in which they
	// finished. Undoing is the failure for which they are being compensated; nil = they are not.
	Undo    []string `json:"undo,omitempty"`
	Undoing *Failure `json:"undoing,omitempty"`
	// Records are the sequences of the records with the [Done] of these steps, by path. 0 = this
	// advance has the Done: the caller that stores the advance sets the sequence.
	Records map[string]uint64 `json:"records,omitempty"`
	// Keeps means that the outputs of the run before stay when the tree begins.
	Keeps bool `json:"keeps,omitempty"`
	// After is the path of the step after which the tree begins (Change.Path); "" = at its first step.
	// The outputs of the run before stay then, too.
	After string `json:"after,omitempty"`
	// Home is the member of steps with the outputs of a subagent's tree, so that neither agent
	// touches the other's outputs. "" = the outputs are in steps itself.
	Home string `json:"home,omitempty"`
}

// Outputs is the member of the state that has the outputs of steps.
const Outputs = agents.Outputs

// BranchRef is a branch of a parallel or map step.
type BranchRef struct {
	// Path is that of the action with the branches, Index the branch's in it, from 0.
	Path  string `json:"path"`
	Index int    `json:"index"`
	// Round is that of the innermost loop around the branch; 0 = none. Failure is that of the
	// onError steps or the compensation around it; nil = none.
	Round   int      `json:"round,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Into returns the Branch of a position for a branch of the action at a path.
func (pos TreePosition) Into(path string, index int) []BranchRef {
	ref := BranchRef{Path: path, Index: index}
	ref.Round, ref.Failure = pos.roundAndFailure()
	return append(slices.Clone(pos.Branch), ref)
}

// roundAndFailure returns the round and the failure that expressions see at the position. The
// innermost loop and the innermost onError steps count, in the position's branch before those
// around the branch. A branch that compensates another one sees the failure that its BranchRef has,
// and not its own Undoing.
func (pos TreePosition) roundAndFailure() (round int, failure *Failure) {
	if n := len(pos.Branch); n > 0 {
		round, failure = pos.Branch[n-1].Round, pos.Branch[n-1].Failure
	}
	if pos.Undoing != nil && (failure == nil || !pos.compensatesBranch()) {
		failure = pos.Undoing
	}
	for _, f := range pos.Frames {
		if f.Round > 0 {
			round = f.Round
		}
		if f.Failure != nil {
			failure = f.Failure
		}
	}
	return round, failure
}

// compensatesBranch reports whether the position is in a branch that compensates another one, as
// its path shows.
func (pos TreePosition) compensatesBranch() bool {
	n := len(pos.Branch)
	return n > 0 && strings.HasSuffix(pos.Branch[n-1].Path, undoMark)
}

// Frame is one open step of a position. Which fields apply depends on the kind of the step.
type Frame struct {
	// At is the index of the step in its list. Case is the chosen case of a route.
	At   int `json:"at"`
	Case int `json:"case,omitempty"`
	// Round is how often a loop has begun its steps. Try is how often the step was tried again.
	Round int `json:"round,omitempty"`
	Try   int `json:"try,omitempty"`
	// Deadline is when the step must have ended; zero = never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Waiting means that the step waits for its next try, which EventWoken begins.
	Waiting bool `json:"waiting,omitempty"`
	// Repairs is how often an invalid answer was sent back.
	Repairs int `json:"repairs,omitempty"`
	// Failure is why the step failed, while its onError steps run.
	Failure *Failure `json:"failure,omitempty"`
}

// Event is how the action at a position ended. The fields without JSON have content; the caller
// reads them from the log.
type Event struct {
	Kind EventKind `json:"kind"`
	// Output is the output of the step as JSON, of EventDone only. An agent's is the text of its
	// last message as a string; a tool's is its result, a string unless it is JSON; an approve
	// step's is {"approved": bool, …}.
	Output json.RawMessage `json:"-"`
	// Failure is why the step failed, of EventFailed and EventCancelled; nil = unknown.
	Failure *Failure `json:"failure,omitempty"`
	// Branches are those that failed or were cancelled, by index: they have compensated their own
	// steps. EventJoined has them, and so do EventFailed and EventCancelled if branches were
	// active.
	Branches []BranchFailure `json:"branches,omitempty"`
	// Items are those of a map's branches. Ends are the records with which branches ended that may
	// have to be compensated; 0 = nothing to compensate. Both are set if the step compensates.
	Items []json.RawMessage `json:"-"`
	Ends  []uint64          `json:"-"`
}

// EventKind is a kind of event. It is part of histories, so the values do not change.
type EventKind string

// The kinds of events.
const (
	EventBegun     EventKind = "begun"     // the tree, or the branch, begins
	EventDone      EventKind = "done"      // the agent, tool call or approval has ended
	EventFailed    EventKind = "failed"    // it has failed for good
	EventJoined    EventKind = "joined"    // the branches have ended
	EventWoken     EventKind = "woken"     // the wait before the next try is over
	EventCancelled EventKind = "cancelled" // the run is to end: finished steps are compensated
)

// Failure is why a step failed: a code, and a message without content. Failures are parts of
// positions and histories; their details are in the log.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Record is the sequence of the record with the detail; 0 = none. Detailed means that this
	// advance made the detail: Record is 0 until the advance is stored, as in TreePosition.Records.
	Record   uint64 `json:"record,omitempty"`
	Detailed bool   `json:"detailed,omitempty"`
	// Detail is the message of a provider, a tool or a validator. It may have content, and never
	// enters a history.
	Detail string `json:"-"`
}

// Text returns the message with the detail. It may have content.
func (f Failure) Text() string {
	if f.Detail == "" {
		return f.Message
	}
	return f.Message + ": " + f.Detail
}

// SameAs reports whether two failures are equal, except for their details.
func (f Failure) SameAs(other Failure) bool {
	return f.Code == other.Code && f.Message == other.Message
}

// Failures returns the failures of the position. They are not copies: the caller may set their
// details and records.
func (pos TreePosition) Failures() []*Failure {
	var all []*Failure
	add := func(f *Failure) {
		if f != nil {
			all = append(all, f)
		}
	}
	for _, b := range pos.Branch {
		add(b.Failure)
	}
	for _, f := range pos.Frames {
		add(f.Failure)
	}
	add(pos.Undoing)
	return all
}

// BranchFailure is a branch that failed.
type BranchFailure struct {
	Index int `json:"index"`
	Failure
}

// Env is what expressions and the interpreter read besides the tree. Advance does not change it.
type Env struct {
	Input    json.RawMessage // the run's input
	Messages json.RawMessage // the conversation, a list of AG-UI messages
	State    json.RawMessage // the thread's, with outputs under steps
	Caller   *agents.Caller
	// Items are those of the branches around the position, one for each BranchRef; null for a
	// branch of parallel.
	Items []json.RawMessage
	Now   time.Time
	// Recall returns the Done of a step, by its path and its record. Ended returns the end of the
	// branch that the position's branch compensates.
	Recall func(path string, record uint64) (Done, error)
	Ended  Ended
}

// Done is what the compensation of a finished step needs besides the state at that time. The caller
// of Advance stores it with the advance.
type Done struct {
	// Outputs are those of the round or try in which the step finished, by name: later rounds
	// replace them in the state.
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"`
	// Items and Ends are those of its branches (see Event).
	Items []json.RawMessage `json:"items,omitempty"`
	Ends  []uint64          `json:"ends,omitempty"`
}

// Ended is the part of a branch's last position that its compensation needs: its finished steps.
type Ended struct {
	Undo    []string          `json:"undo,omitempty"`
	Records map[string]uint64 `json:"records,omitempty"`
}

// Advanced is the result of Advance. The caller stores Position, Changes and Done together, and
// then carries the action out.
type Advanced struct {
	Position TreePosition
	// Changes are for clients, in this order, before the action.
	Changes []Change
	Action  Action
	// RequiresSameState means that a change depends on the value of the state. The advance counts
	// only if the state is still the same when it is stored; otherwise the caller calls Advance
	// again.
	RequiresSameState bool
	// Done has to be stored, by path, for compensations (see Env.Recall).
	Done map[string]Done
	// Result is the result of the agent, if its steps have ended and it has an output; nil = none.
	Result json.RawMessage
}

// Change is a change for clients: a step begins or ends, or the state changes.
type Change struct {
	Started, Finished string          // the step's name, with the steps around it: plan/model
	Patch             json.RawMessage // a JSON Patch of the state
	// Path is set if a tree may begin after the step that has finished: the path of the step, with
	// the rounds of loops and without tries. "" = the step has failed without onError: continue, or is
	// in a branch, in onError steps or in a compensation.
	Path string
}

// Action is what to do next. One of the pointers or Sleep is set; none = the steps have ended.
type Action struct {
	// Path identifies the step with its rounds and tries: no other action has it. Name is the name
	// in STEP_STARTED, without rounds and tries.
	Path, Name string
	// Deadline is when it must have ended; zero = never.
	Deadline time.Time

	Agent    *Agent
	Tool     *Call
	Approve  *Call
	Branches *Branches
	Sleep    time.Duration // greater than 0: the wait before the next try
	// Failed is set at the end if the steps have failed. Finished steps are compensated by then.
	Failed *Failure
}

// Agent is an agent to be run.
type Agent struct {
	// Name is the agent's; "" = the step defines the agent inline (see Inline).
	Name string
	// Prompt is the only message for the agent; nil = it receives the conversation.
	Prompt *string
	// Repair is the message that sends an invalid answer back, with the validation errors; "" =
	// none.
	Repair string
	// Schema is the schema of the answer; nil = any text.
	Schema json.RawMessage
}

// Call is a tool call or an approval, with its arguments as a JSON object of at most
// agents.MaxOutput bytes.
type Call struct {
	Tool string // empty for an approval
	Args json.RawMessage
	// Message is the message of an approval.
	Message string
	// Rule is the rule of an approval: who decides, and until when.
	Rule *agents.Approval
}

// Branches are branches to be run in parallel, each with a position of its own (see
// TreePosition.Into).
type Branches struct {
	// Items are those of a map; nil for parallel.
	Items []json.RawMessage
	// Count is how many branches there are, also of parallel. It is greater than 0.
	Count int
	// Ends are the records of the ends of the branches that these compensate; nil = they do not
	// compensate.
	Ends []uint64
	// Names are those of parallel's branches, in order; nil for map, whose branches are numbered.
	Names []string
	// Concurrency bounds how many run concurrently.
	Concurrency int
	// Stop tells that no branch begins after one has failed, and that active ones are cancelled.
	Stop bool
}
