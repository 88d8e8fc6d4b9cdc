package snapshot

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// Snapshot is a thread at one record of its log: the fold of its records up to there. It is
// immutable, and shared by concurrent users; none of them may change a list of it. The exported
// fields are the format of checkpoints (currentCheckpoint).
//
// A step counts when its done record is read, so a superseded attempt leaves nothing. The text that
// a model streams is never read: the done record has the finished messages. Changes of the state
// and of activities are read from the events of open attempts, because lanes may make them
// concurrently and their order is that of the log.
type Snapshot struct {
	// Seq is the sequence of the last record that the snapshot contains.
	Seq uint64 `json:"seq"`

	LastRun
	Interruptions

	// Entries is the conversation.
	Entries []Entry `json:"entries,omitempty"`
	// Contributors are everybody whose content the conversation, the state or a summary may have,
	// the longest known first. A fork begins with those of its origin.
	Contributors []Contributor `json:"contributors,omitempty"`
	// TenantAgents are the agents of the tenant that have taken part in the thread, each revision
	// once, the longest known first. A fork begins with those of its origin. See ForRules.
	TenantAgents []stream.AgentRevision `json:"tenantAgents,omitempty"`
	// Summaries replace the beginning of the conversation for models, the newest last.
	Summaries []stream.Summary `json:"summaries,omitempty"`
	// Moved reports whether messages have changed their place: by an input that cut, or by a result
	// that was inserted. Unmoved is the number of messages at the beginning that never did; it
	// counts with Moved only.
	Moved   bool `json:"moved,omitempty"`
	Unmoved int  `json:"unmoved,omitempty"`

	RunHistory

	// State is the thread's state after all finished steps.
	State json.RawMessage `json:"state,omitempty"`
	// ByAgents is the part of the state that agents have written; nil = all of it (AgentState).
	ByAgents json.RawMessage `json:"byAgents,omitempty"`
	// Journal and Pending hold what open attempts have changed of the state and of the messages
	// (journal.go).
	Journal journal   `json:"journal,omitzero"`
	Pending []Pending `json:"pending,omitempty"`

	sinceCheckpoint int  // bytes of records since the last checkpoint
	hidesState      bool // of a copy that ForRules returned
}

// LastRun is the thread's last run: how the log identifies it, and what its input brought.
type LastRun struct {
	// Run is the token of the thread's last run, RunID its ID, and Execution the Temporal run ID of
	// the execution that opened it. Sealed reports whether it has its terminal record. Opened is
	// the sequence of its first record.
	Run       string `json:"run,omitempty"`
	RunID     string `json:"runId,omitempty"`
	Execution string `json:"execution,omitempty"`
	Sealed    bool   `json:"sealed,omitempty"`
	Opened    uint64 `json:"opened,omitempty"`
	// Input is the sequence of the proposal with that run's input. Context and Tools report whether
	// the input has some.
	Input   uint64 `json:"input,omitempty"`
	Context bool   `json:"context,omitempty"`
	Tools   bool   `json:"tools,omitempty"`
	// Requester is that run's requester; nil = an anonymous caller.
	Requester *auth.Principal `json:"requester,omitempty"`
	// Mark is the sequence of that run's last mark (see stream.Attempt.FinishIfUnchanged); 0 =
	// none.
	Mark uint64 `json:"mark,omitempty"`
	// Cut are the messages that the run's input cut and that clients keep without a correction.
	Cut []CutMessage `json:"cut,omitempty"`
	// Begun are the lanes of that run on which a call has begun without a result in the log.
	Begun []stream.Lane `json:"begun,omitempty"`
	// Restored reports whether that run's end has restored predicted members of the state.
	Restored bool `json:"restored,omitempty"`
}

// Interruptions are the interrupts of the thread's last run, and the decisions about interrupts.
type Interruptions struct {
	// ClientCalls are the IDs of the client tool calls, and Interrupts the interrupts, that the run
	// waits for: it ended with them, or is held. Answered are the last maxAnswered interrupts that
	// were resolved, Decided the decisions about them.
	ClientCalls []string         `json:"clientCalls,omitempty"`
	Interrupts  []agui.Interrupt `json:"interrupts,omitempty"`
	Answered    []agui.Interrupt `json:"answered,omitempty"`
	Decided     []stream.Decided `json:"decided,omitempty"`
	// RemoteInterrupts are the records with the interrupts of remote agents that their next run answers, by
	// the remote's ID of the thread.
	RemoteInterrupts map[string]uint64 `json:"asking,omitempty"`
	// Remembered are approvals that cover further calls, the newest last.
	Remembered []stream.Remembered `json:"remembered,omitempty"`
}

// RunHistory is what a thread has been through: its runs, their usage, and where it comes from.
type RunHistory struct {
	// Runs are all runs of the thread, in their order. Usage is their sum, with one entry for each
	// model; Estimated is the part of it that is estimated, nil = none.
	Runs      []RunNote         `json:"runs,omitempty"`
	Usage     []agui.TokenUsage `json:"usage,omitempty"`
	Estimated *EstimatedUsage   `json:"estimated,omitempty"`
	// Active is the time of the last record that the fold did not ignore.
	Active time.Time `json:"active,omitzero"`
	// LastCancel is the sequence of the last request to cancel a run of the thread, whether that run
	// has begun or not; 0 = none.
	LastCancel uint64 `json:"lastCancel,omitempty"`
	// Handed is the handoff of the thread; nil = the agent of the last run has it.
	Handed *stream.HandoffTrail `json:"handed,omitempty"`
	// Origin is the run that the thread is a fork of; nil = it is not a fork.
	Origin *stream.Origin `json:"origin,omitempty"`
}

// CutMessage is a message that an input cut, without its content.
type CutMessage struct {
	ID           string    `json:"id"`
	Role         agui.Role `json:"role"`
	ActivityType string    `json:"activityType,omitempty"`
}

// Messages returns the conversation as clients see it.
func (s *Snapshot) Messages() []agui.Message { return AppendShown(nil, s.Entries) }

// FindCall returns a tool call of the conversation by its ID, the newest if several have it, and
// whether there is one.
func (s *Snapshot) FindCall(id string) (agui.ToolCall, bool) {
	for _, e := range slices.Backward(s.Entries) {
		for _, c := range e.Message.ToolCalls {
			if c.ID == id {
				return c, true
			}
		}
	}
	return agui.ToolCall{}, false
}

// WithoutAgentActivities returns a copy without the pending activities of lanes on which agents
// write. A prelude repeats those activities as events.
func (s *Snapshot) WithoutAgentActivities() *Snapshot {
	without := *s
	without.Pending = nil
	for _, p := range s.Pending {
		if !p.Lane.IsAgentLane() {
			without.Pending = append(without.Pending, p)
		}
	}
	return &without
}

// MessagesFor returns the messages for one reader, with the pending activities in their places.
// Keys of unshown are the writers whose attempts the reader is not shown.
func (s *Snapshot) MessagesFor(unshown map[string]uint64) []agui.Message {
	messages := make([]agui.Message, 0, len(s.Entries)+len(s.Pending))
	next := 0
	for _, p := range s.Pending {
		if next < p.At {
			messages = AppendShown(messages, s.Entries[next:p.At])
			next = p.At
		}
		if _, hidden := unshown[p.Writer]; !hidden && !isPlaceholder(p.Message) {
			messages = append(messages, p.Message)
		}
	}
	return AppendShown(messages, s.Entries[next:])
}

// Status returns the status of the thread. It never is stream.StatusPaused: only the index of
// threads knows of pauses.
func (s *Snapshot) Status() stream.Status {
	switch {
	case s.Run != "" && !s.Sealed:
		return stream.StatusRunning
	case len(s.Interrupts)+len(s.ClientCalls) > 0:
		return stream.StatusWaiting
	case len(s.Runs) > 0 && s.Runs[len(s.Runs)-1].Outcome == OutcomeError:
		return stream.StatusFailed
	}
	return stream.StatusIdle
}

// Agent returns the agent that has the thread: the one that it was handed over to, else that of the
// last run, else that of the fork's origin. "" = the thread has no run.
func (s *Snapshot) Agent() string {
	switch {
	case s.Handed != nil:
		return s.Handed.To
	case len(s.Runs) > 0:
		return s.Runs[len(s.Runs)-1].Agent
	case s.Origin != nil:
		return s.Origin.Agent
	}
	return ""
}

// CanContribute reports whether the thread has room for content of a principal.
func (s *Snapshot) CanContribute(p *auth.Principal) bool {
	return len(s.Contributors) < MaxContributors || slices.ContainsFunc(s.Contributors, func(c Contributor) bool { return c.is(p) })
}

// Authors returns the contributors that have spoken, and not only decided about calls.
func (s *Snapshot) Authors() []*auth.Principal {
	var authors []*auth.Principal
	for _, c := range s.Contributors {
		if !c.OnlyDecides {
			authors = append(authors, c.Principal)
		}
	}
	return authors
}
