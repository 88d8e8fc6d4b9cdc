package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agents"
)

// Cursor is a place in a tree of steps, and what has to be known there of the way that led to it. It is small
// (the names of a few steps, counts and times), stands in histories, and says nothing of content. The
// zero Cursor is the beginning of the tree.
type Cursor struct {
	// Branch is the way to the branch that the cursor walks, from the run's own agent on; none = the whole tree.
	Branch []Fork `json:"branch,omitempty"`
	// Frames are the steps that are open, the outermost first.
	Frames []Frame `json:"frames,omitempty"`
	// Undo are the places of finished steps that are to be compensated for if a later one fails for good, in the
	// order in which they finished. Undoing tells that this is what is being done.
	Undo    []string `json:"undo,omitempty"`
	Undoing *Failure `json:"undoing,omitempty"`
	// Records are where what is [Done] of these is kept, by path, if anything is. 0 = with this very move: who stores the
	// cursor puts in what it is stored as.
	Records map[string]uint64 `json:"records,omitempty"`
	// Keeps tells that outputs which are there when the tree begins stay.
	Keeps bool `json:"keeps,omitempty"`
	// Home is the member of steps below which the outputs stand while a tree works for another one: neither touches those
	// of the other. Empty = they stand in steps itself.
	Home string `json:"home,omitempty"`
}

// Outputs is the member of the state that has the outputs of steps.
const Outputs = "steps"

// Fork is a branch of a parallel or map step.
type Fork struct {
	// Path is that of the action that forked, Index the branch's, from 0.
	Path  string `json:"path"`
	Index int    `json:"index"`
	// Round and Failure are what the steps around the branch see as round and error: those of the innermost loop, and of
	// what runs since something failed. 0 and nil = it stands in neither.
	Round   int      `json:"round,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Into is the way to a branch of the action at the cursor.
func (c Cursor) Into(path string, index int) []Fork {
	f := Fork{Path: path, Index: index}
	f.Round, f.Failure = c.around()
	return append(slices.Clone(c.Branch), f)
}

// around are the round of the loop and the failure that expressions see at the cursor, the innermost ones.
func (c Cursor) around() (round int, why *Failure) {
	if n := len(c.Branch); n > 0 {
		round, why = c.Branch[n-1].Round, c.Branch[n-1].Failure
	}
	if c.Undoing != nil && (why == nil || !c.isUndo()) {
		why = c.Undoing
	}
	for _, f := range c.Frames {
		if f.Round > 0 {
			round = f.Round
		}
		if f.Failure != nil {
			why = f.Failure
		}
	}
	return round, why
}

// isUndo tells whether the cursor is in a branch whose steps are to be compensated for.
func (c Cursor) isUndo() bool {
	n := len(c.Branch)
	return n > 0 && strings.HasSuffix(c.Branch[n-1].Path, undoMark)
}

// Frame is one open step.
type Frame struct {
	// At is its index among the steps that it stands in; Case is the one of a route that was chosen.
	At   int `json:"at"`
	Case int `json:"case,omitempty"`
	// Round is how often a loop has begun its steps, Try how often the step was tried again.
	Round int `json:"round,omitempty"`
	Try   int `json:"try,omitempty"`
	// Deadline is when the step has to have ended; zero = never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Waiting tells that the step is not under way: it is tried again when the time has come.
	Waiting bool `json:"waiting,omitempty"`
	// Repairs is how often the agent was told what is wrong with its answer.
	Repairs int `json:"repairs,omitempty"`
	// Failure is why the step failed, while what runs instead does so.
	Failure *Failure `json:"failure,omitempty"`
}

// Event is what has happened since the cursor was made.
type Event struct {
	Kind EventKind `json:"kind"`
	// Output is what the step came to, as JSON: of an agent the text of its last message as a string, of a tool
	// its result, JSON if it is JSON and else a string; of a question {"approved": bool, …}. Of EventDone only.
	Output json.RawMessage `json:"-"`
	// Failure is why the step failed. Of EventFailed and EventCancelled; nil = it is only known that it did.
	Failure *Failure `json:"failure,omitempty"`
	// Branches are those that failed or were cancelled, by index, each once: they have compensated for what they
	// did. Of EventJoined, and of EventFailed and EventCancelled where branches were under way.
	Branches []BranchFailure `json:"branches,omitempty"`
	// Items are those of a map's branches, and Ends the records with which branches came to their end that have done
	// something which may have to be compensated for; 0 = not so. They are there if the step compensates.
	Items []json.RawMessage `json:"-"`
	Ends  []uint64          `json:"-"`
}

// EventKind is a kind of event.
type EventKind string

// The kinds of events.
const (
	EventBegun     EventKind = "begun"     // nothing: the tree, or the branch, begins
	EventDone      EventKind = "done"      // the agent, tool or question has ended
	EventFailed    EventKind = "failed"    // it has failed, and is not tried again by itself
	EventJoined    EventKind = "joined"    // the branches have ended
	EventWoken     EventKind = "woken"     // the time is over that was to be waited
	EventCancelled EventKind = "cancelled" // the run is to end: what is done is compensated for
)

// Failure is why a step failed: a code, and words without content.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
	// Record is the sequence of the record in the log that keeps the detail. Detailed tells that a move made the failure and
	// its detail: Record is then 0 until the move is stored, as in Cursor.Records.
	Record   uint64 `json:"record,omitempty"`
	Detailed bool   `json:"detailed,omitempty"`
	// Detail says more, and may be content: what a provider, a tool or a validator said. It never leaves the activity.
	Detail string `json:"-"`
}

// Text is the message with the detail.
func (f Failure) Text() string {
	if f.Detail == "" {
		return f.Message
	}
	return f.Message + ": " + f.Detail
}

// SameAs tells whether two failures are told of as one: their details may differ.
func (f Failure) SameAs(other Failure) bool {
	return f.Code == other.Code && f.Message == other.Message
}

// Failures are those that the cursor holds; the caller may change them.
func (c Cursor) Failures() []*Failure {
	var all []*Failure
	add := func(f *Failure) {
		if f != nil {
			all = append(all, f)
		}
	}
	for _, b := range c.Branch {
		add(b.Failure)
	}
	for _, f := range c.Frames {
		add(f.Failure)
	}
	add(c.Undoing)
	return all
}

// BranchFailure is a branch that failed.
type BranchFailure struct {
	Index int `json:"index"`
	Failure
}

// Env is what expressions see.
type Env struct {
	Input    json.RawMessage // the run's input
	Messages json.RawMessage // the conversation, a list of AG-UI messages
	State    json.RawMessage // the thread's, with outputs under steps
	Caller   *agents.Caller
	// Items are those of the branches that the cursor is in, one for each Fork; null for a branch of parallel.
	Items []json.RawMessage
	Now   time.Time
	// Recall finds what a move has kept of a step, by the cursor's path and record. Ended is how a branch came to its end
	// for which the cursor's compensates.
	Recall func(path string, record uint64) (Done, error)
	Ended  Ended
}

// Done is what has to be known of what a step has done, besides the state, to compensate for it.
type Done struct {
	// Outputs are those of the round or the try that the step was in, by name: a later one has others.
	Outputs map[string]json.RawMessage `json:"outputs,omitempty"`
	// Items and Ends are those of its branches, like an event's.
	Items []json.RawMessage `json:"items,omitempty"`
	Ends  []uint64          `json:"ends,omitempty"`
}

// Ended is what the cursor knew at the end of a branch: what it has done.
type Ended struct {
	Undo    []string          `json:"undo,omitempty"`
	Records map[string]uint64 `json:"records,omitempty"`
}

// Move is what comes next.
type Move struct {
	Cursor Cursor
	// Changes are to be told first, in this order.
	Changes []Change
	Action  Action
	// Sets tells that a step has changed the state by what it was: that counts only if it is that still.
	Sets bool
	// Done is to be kept, by path, for whoever compensates (see Env.Recall).
	Done map[string]Done
}

// Change is one thing that clients are told: a step begins or ends, or the state changes.
type Change struct {
	Started, Finished string          // the step's name, with those that it stands in: plan/model
	Patch             json.RawMessage // a JSON Patch of the state
}

// Action is what is to be done. One of the pointers is set; none = the steps are at their end.
type Action struct {
	// Path names the step and its place: it is the same whenever the tree comes by here again in the
	// same round and try, and no other place has it. Name is what STEP_STARTED says, and does without rounds and tries.
	Path, Name string
	// Deadline is when it has to have ended; zero = never.
	Deadline time.Time

	Agent    *Agent
	Tool     *Call
	Approve  *Call
	Branches *Branches
	Sleep    time.Duration // greater than 0: to be waited, before the step is tried again
	// Failed is set at the end if the steps have failed; what could be compensated for has been.
	Failed *Failure
}

// Agent is an agent to be run.
type Agent struct {
	// Name is the agent's; empty = it is the one that stands at the step itself (see Inline).
	Name string
	// Prompt is what the agent is asked, and all that it is told of the conversation; nil = it is told all of that.
	Prompt *string
	// Repair is set where the agent is asked again, since what it said was not what it had to say: the words
	// that tell it so.
	Repair string
	// Schema is what the answer has to be as JSON; nil = any text.
	Schema json.RawMessage
}

// Call is a tool call, or a question, with its arguments as a JSON object.
type Call struct {
	Tool string // empty for a question
	Args json.RawMessage
	// Message is what a question asks.
	Message string
	// Rule is by whom and until when a question is decided.
	Rule *agents.Approval
}

// Branches are to be run beside one another.
type Branches struct {
	// Items are those of a map; nil for parallel.
	Items []json.RawMessage
	Count int
	// Ends are the records with which the branches came to their end for which these compensate; nil = they do not.
	Ends []uint64
	// Names are those of parallel's branches.
	Names []string
	// AtOnce bounds how many are under way at a time.
	AtOnce int
	// Stop tells that no further branch begins when one has failed, and those under way are cancelled.
	Stop bool
}
