package runs

// Child is what tells the steps of a subagent from those of others.
type Child struct {
	// Lanes are the places of the calls that led here, from the run's own agent on: the lane.
	Lanes []int `json:"slots"`
	// Depth is how many agents have handed the work on that led here, the run's own among them: calls only, where Slots
	// count branches as well.
	Depth int `json:"depth,omitempty"`
	// Since is where the present use of that lane begins.
	Since uint64 `json:"since"`
	// CallID is the call that the subagent works for, MessageID the message that has it, Index its place there.
	CallID    string `json:"callId"`
	MessageID string `json:"messageId"`
	Index     int    `json:"index,omitempty"`
	// Args is the digest of the arguments that were approved, if the call had to be, and Edit the proposal with
	// them if they are others than the model's.
	Args string `json:"args,omitempty"`
	Edit uint64 `json:"edit,omitempty"`
	// Prefix begins the ids of its steps.
	Prefix string `json:"prefix"`
	// BranchPath is the path of a branch of a step, and empty of what works for a call. Index is its place among the others,
	// CallID only a name, and Within that of the subagent in whose step it is.
	BranchPath   string `json:"fork,omitempty"`
	ParentCallID string `json:"within,omitempty"`
	// Compensates tells that the subagent compensates for something: that the run was cancelled does not stop it.
	Compensates bool `json:"undoes,omitempty"`
	// Name is what clients see.
	Name string `json:"name,omitempty"`
}

// Step is what every activity is told about its place in the run.
type Step struct {
	Run       Ref    `json:"run"`
	Execution string `json:"execution"`
	Agent     string `json:"agent"`
	Revision  string `json:"revision"`
	// ID is the same for every attempt of the step and for no other step of the run.
	ID   string `json:"step"`
	Turn int    `json:"turn"`
	// Name is what STEP_STARTED says; Closes is the step whose STEP_FINISHED rides along.
	Name   string `json:"name"`
	Closes string `json:"closes,omitempty"`
	// After is the last record of the lane that the agent speaks on.
	After uint64 `json:"after"`
	// Child is set in the steps of a subagent, At in those of an agent or call that is a step of another agent.
	Child *Child     `json:"branch,omitempty"`
	Place *StepPlace `json:"at,omitempty"`
	// Compensates tells that the step compensates for another: that the run was cancelled does not stop it.
	Compensates bool `json:"undoes,omitempty"`
}

// Beginning is what a run's first record is made of.
type Beginning struct {
	// Input and Digest are those of the accepted input; none in a run that nobody asked for, which goes on
	// behind the run Continues.
	Input     uint64 `json:"input,omitempty"`
	Digest    string `json:"digest,omitempty"`
	Continues string `json:"continues,omitempty"`
	// Edits tells that calls are made with other arguments than clients have seen.
	Edits bool `json:"edits,omitempty"`
}

// MaxLanes is how many tool calls of a run are under way at a time, each on a lane of its own.
const MaxLanes = 8

// Lane is a tool lane and the last record that is known of it.
type Lane struct {
	Index int    `json:"lane"`
	After uint64 `json:"after"`
	// Subagent tells that a subagent worked for the call, Fork that it was a branch, which works for none.
	Subagent bool `json:"subagents,omitempty"`
	Branch   bool `json:"fork,omitempty"`
}

// FailedStep is a step that has failed on the lane on which the agent speaks. Whether it has begun there is not known,
// and it may still write: it is taken over before anything comes behind it.
type FailedStep struct {
	ID      string     `json:"step"`
	Name    string     `json:"name"`
	Closes  string     `json:"closes,omitempty"`
	After   uint64     `json:"after"`
	Place   *StepPlace `json:"at,omitempty"`
	Steered []uint64   `json:"steered,omitempty"`
}

// StepPlace is a place among steps where an agent speaks or a call is made.
type StepPlace struct {
	Path string `json:"path"`
	Name string `json:"name"`
	// Inline tells that the definition is that of the step.
	Inline bool `json:"inline,omitempty"`
	// Scope marks what is said here. Alone tells that the agent hears nothing else of the conversation.
	Scope    string `json:"scope"`
	Isolated bool   `json:"alone,omitempty"`
	// Tree is the record that has the steps of a program; 0 = they are the agent's.
	Tree uint64 `json:"tree,omitempty"`
	// Prompts are the records that have what the agent is asked, besides the conversation.
	Prompts []uint64 `json:"asked,omitempty"`
}
