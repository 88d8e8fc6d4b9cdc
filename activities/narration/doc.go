// Package narration turns what a model, a provider or a tool sends into AG-UI events on a lane.
//
//	llm.Chunk ──► Narrator ──events──► stream.Attempt ──► log
//	                 └─ at the end: messages for the conversation, calls for the workflow
//	tool's report ──► Reporter ──events──► stream.Attempt
//
// A Narrator takes the chunks of one completion. It emits text, reasoning and tool calls as they
// arrive, and ends with the step's result (narrator.go; reasoning in thinking.go; predicted state
// in prediction.go and argument.go). It also tells the workflow which calls are subagents and
// handoffs (agent_calls.go; their tools in subagent.go and handoff.go). A Reporter emits the
// progress that a tool or a provider reports.
//
// The package writes to no lane itself: it uses the attempt, or the emit function, of its caller.
package narration
