package api

import (
	"fmt"

	"github.com/perdure/perdure/agui"
)

// maxMessages and maxTools bound the lists of an input.
const (
	maxMessages = 10_000
	maxTools    = 1_000
)

// checkInputIDs checks every ID of an input, and the length of its lists.
func checkInputIDs(in *agui.RunAgentInput) error {
	switch {
	case len(in.Messages) > maxMessages:
		return badRequest("invalid_input", "/messages", fmt.Sprintf("may have at most %d entries", maxMessages))
	case len(in.Tools) > maxTools:
		return badRequest("invalid_input", "/tools", fmt.Sprintf("may have at most %d entries", maxTools))
	}
	if err := checkID("/threadId", in.ThreadID); err != nil {
		return err
	}
	if err := checkID("/runId", in.RunID); err != nil {
		return err
	}
	if err := checkOptionalID("/parentRunId", in.ParentRunID); err != nil {
		return err
	}
	for i, m := range in.Messages {
		if err := checkMessageIDs(fmt.Sprintf("/messages/%d", i), m); err != nil {
			return err
		}
	}
	return nil
}

func checkMessageIDs(pointer string, m agui.Message) error {
	if err := checkID(pointer+"/id", m.ID); err != nil {
		return err
	}
	if err := checkOptionalID(pointer+"/toolCallId", m.ToolCallID); err != nil {
		return err
	}
	for i, call := range m.ToolCalls {
		if err := checkID(fmt.Sprintf("%s/toolCalls/%d/id", pointer, i), call.ID); err != nil {
			return err
		}
	}
	return nil
}

func checkOptionalID(pointer, id string) error {
	if id == "" {
		return nil
	}
	return checkID(pointer, id)
}
