package narration

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
)

// Subagent is a subagent that a model may call like a tool. It receives the task and nothing else
// of the conversation; its last message is the result of the call.
type Subagent struct {
	runs.AgentRef
	Description string
}

// taskSchema is the JSON Schema of the arguments of a subagent's call.
const taskSchema = `{"type":"object","required":["task"],"additionalProperties":false,"properties":{` +
	`"task":{"type":"string","minLength":1,"description":"The task, with all information that it needs: the agent does not see the rest of this conversation."}}}`

// OfferSubagents adds subagents to a model's tools. It returns all tools, and the subagents that it
// added: an existing tool of the same name has precedence.
func OfferSubagents(offered []llm.Tool, subagents []Subagent) ([]llm.Tool, []Subagent) {
	var added []Subagent
	for _, subagent := range subagents {
		if !slices.ContainsFunc(offered, func(tool llm.Tool) bool { return tool.Name == subagent.Agent }) {
			offered = append(offered, llm.Tool{Name: subagent.Agent, Description: subagent.Description, Parameters: json.RawMessage(taskSchema)})
			added = append(added, subagent)
		}
	}
	return offered, added
}

// TaskOf returns the task from the arguments of a call. The error is for the model: it says what
// the arguments must be.
func TaskOf(arguments string) (string, error) {
	var call struct {
		Task string `json:"task"`
	}
	decoder := json.NewDecoder(strings.NewReader(arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&call); err != nil || call.Task == "" || decoder.More() {
		return "", errors.New(`invalid arguments: expected {"task": "…"}, a string that is not empty`)
	}
	return call.Task, nil
}
