package api

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// Before AG-UI had interrupts, clients were asked by the custom event on_interrupt, and answered in
// forwardedProps.command: {resume, interruptEvent}, where the latter is the event's value. For an agent that has such
// clients that is an entry of resume.

// resumeByCommand makes such an answer the entry that it stands for. What is none is left as it is: other servers than
// this one have other uses for it.
func resumeByCommand(in *agui.RunAgentInput) {
	var props struct {
		Command struct {
			Resume         json.RawMessage `json:"resume"`
			InterruptEvent json.RawMessage `json:"interruptEvent"`
		} `json:"command"`
	}
	if len(in.Resume) > 0 || json.Unmarshal(in.ForwardedProps, &props) != nil || len(props.Command.Resume) == 0 {
		return
	}
	var asked agui.Interrupt
	if json.Unmarshal(unquoted(props.Command.InterruptEvent), &asked) != nil || asked.ID == "" {
		return
	}
	payload := unquoted(props.Command.Resume)
	if yes := string(payload); asked.Reason == "tool_call" && (yes == "true" || yes == "false") {
		payload = json.RawMessage(`{"approved":` + yes + `}`)
	}
	in.Resume = []agui.ResumeEntry{{InterruptID: asked.ID, Status: agui.ResumeResolved, Payload: payload}}
}

// unquoted is the JSON in a text that has some, as such clients pass values on.
func unquoted(raw json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(raw, &text) == nil && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return raw
}
