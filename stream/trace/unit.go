package trace

// stepSummary ends the ID of the step that makes a summary for a model call.
const stepSummary = "/summary"

// unitKind tells what the activity on a lane does.
type unitKind int

const (
	unitModel   unitKind = iota
	unitSummary          // a model call that summarizes the conversation
	unitTool
	unitEnd   // the end of a subagent, on the lane of its call
	unitOther // an advance of a pipeline, or an interrupt for a limit
)

// unit is a step in the sense of the log: the work of one activity on a lane, with its attempts.
type unit struct {
	step string
	kind unitKind
	// node is the span; nil = the step has none, until an attempt fails.
	node    *node
	attempt *attempt // the last one; nil = none has begun
}
