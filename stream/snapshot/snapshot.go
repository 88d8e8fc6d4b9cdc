package snapshot

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
)

// Snapshot is what the log of a thread says so far: its conversation and its state. It is
// immutable. A step counts when its done is read, so a superseded attempt leaves nothing; and since
// done holds finished messages, what models say piece by piece is never looked at. Changes of the
// state, and activities, are: several lanes may make them at once, and their order is the log's.
type Snapshot struct {
	// Seq is the last record of the thread that is reduced here.
	Seq uint64 `json:"seq"`
	// Run is the token of the last run that began, RunID its id, Execution the one that began it; Sealed
	// tells that it has ended.
	Run       string `json:"run,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Execution string `json:"execution,omitempty"`
	Sealed    bool   `json:"sealed,omitempty"`
	// Opened is the sequence of that run's first record.
	Opened uint64 `json:"opened,omitempty"`
	// Input is the sequence of that run's accepted input, Context tells that it has entries for the model,
	// Tools that it has tools of its client's.
	Input   uint64 `json:"input,omitempty"`
	Context bool   `json:"context,omitempty"`
	Tools   bool   `json:"tools,omitempty"`
	// Waits are the tool calls that the run has ended with, or is held for, and that its client is to answer,
	// Interrupts the questions. Answered are the last ones that were answered, by whomever.
	Waits      []string         `json:"waits,omitempty"`
	Interrupts []agui.Interrupt `json:"interrupts,omitempty"`
	Answered   []agui.Interrupt `json:"answered,omitempty"`
	// Decided are the decisions about these that were carried out.
	Decided []stream.Decided `json:"decided,omitempty"`
	// Remembered are the tools whose calls people need not be asked for any more, the newest last.
	Remembered []stream.Remembered `json:"remembered,omitempty"`
	// Handed tells that the thread was handed over to the agent that has it.
	Handed *stream.Handed `json:"handed,omitempty"`
	// Summaries stand for messages of the conversation, the newest last.
	Summaries []stream.Summary `json:"summaries,omitempty"`
	Entries   []Entry          `json:"entries,omitempty"`
	// Runs are all that began, in their order, Usage what they say that they have used, each model once.
	Runs  []RunNote         `json:"runs,omitempty"`
	Usage []agui.TokenUsage `json:"usage,omitempty"`
	// Estimated is the part of Usage that is estimated; nil = no call was cut.
	Estimated *EstimatedUsage `json:"estimated,omitempty"`
	// Active is when something was last done on the thread.
	Active time.Time `json:"active,omitzero"`
	// Origin is what the thread is a fork of; nil = it began with nothing.
	Origin *stream.Origin `json:"origin,omitempty"`
	// Moved tells that the order of the conversation has changed, by an input or by the result of work that
	// was handed to a subagent, Unmoved how many messages at its
	// beginning never stood anywhere else.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`
	// Cut is what the last run's input cut from the conversation and clients keep unless they are told.
	Cut []CutMessage `json:"cut,omitempty"`
	// Mark is the last mark of the run (see Attempt.FinishOn); 0 = none.
	Mark uint64 `json:"mark,omitempty"`
	// State is what finished steps made of the state.
	State json.RawMessage `json:"state,omitempty"`
	// Journal and Pending hold what attempts changed that are still open: see journal.go.
	Journal journal   `json:"journal,omitzero"`
	Pending []Pending `json:"pending,omitempty"`

	behind int // bytes of records since the last checkpoint
}

// CutMessage is a message that was cut, without its content.
type CutMessage struct {
	ID           string    `json:"id"`
	Role         agui.Role `json:"role"`
	ActivityType string    `json:"activityType,omitempty"`
}

// Messages returns the conversation as clients see it.
func (r *Snapshot) Messages() []agui.Message { return AppendShown(nil, r.Entries) }

// WithoutSpoken leaves out the activities of open attempts on lanes that agents speak on.
func (r *Snapshot) WithoutSpoken() *Snapshot {
	without := *r
	without.Pending = nil
	for _, p := range r.Pending {
		if !p.Lane.Speaks() {
			without.Pending = append(without.Pending, p)
		}
	}
	return &without
}

func (r *Snapshot) MessagesFor(unshown map[string]uint64) []agui.Message {
	messages := make([]agui.Message, 0, len(r.Entries)+len(r.Pending))
	next := 0
	for _, p := range r.Pending {
		if next < p.At {
			messages = AppendShown(messages, r.Entries[next:p.At])
			next = p.At
		}
		if _, hidden := unshown[p.Writer]; !hidden && !isPlace(p.Message) {
			messages = append(messages, p.Message)
		}
	}
	return AppendShown(messages, r.Entries[next:])
}

// Status tells what the thread is doing.
func (r *Snapshot) Status() stream.Status {
	switch {
	case r.Run != "" && !r.Sealed:
		return stream.StatusRunning
	case len(r.Interrupts)+len(r.Waits) > 0:
		return stream.StatusWaiting
	}
	return stream.StatusIdle
}

// Agent is the one that the thread was handed over to, or else that of the last run; of a fork without one, that of
// the run it hangs on.
func (r *Snapshot) Agent() string {
	switch {
	case r.Handed != nil:
		return r.Handed.To
	case len(r.Runs) > 0:
		return r.Runs[len(r.Runs)-1].Agent
	case r.Origin != nil:
		return r.Origin.Agent
	}
	return ""
}
