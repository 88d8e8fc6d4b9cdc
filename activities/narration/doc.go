// Package narration turns what a model, a provider or a tool says into AG-UI events on a lane.
//
// A Narrator takes the chunks of one completion: it emits text, reasoning and tool calls as they
// come, and ends with the step's result and with what the workflow is told of the calls. A Reporter
// emits the progress that a tool or a provider reports.
package narration
