package request

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// maxTools bounds the tools of an input. Package agui bounds its other lists.
const maxTools = 1_000

// CheckInputIDs validates every ID of an input, and the length of its lists. The error is a 400
// whose pointer names the member.
func CheckInputIDs(in *agui.RunAgentInput) error {
	if len(in.Tools) > maxTools {
		return problem.BadRequest("invalid_input", "/tools", fmt.Sprintf("may have at most %d entries", maxTools))
	}
	if err := CheckID("/threadId", in.ThreadID); err != nil {
		return err
	}
	if err := CheckID("/runId", in.RunID); err != nil {
		return err
	}
	if err := CheckOptionalID("/parentRunId", in.ParentRunID); err != nil {
		return err
	}
	for i, m := range in.Messages {
		if err := CheckMessageIDs(fmt.Sprintf("/messages/%d", i), m); err != nil {
			return err
		}
	}
	return nil
}

// CheckMessageIDs validates every ID of a message. pointer is the JSON pointer to the message.
func CheckMessageIDs(pointer string, m agui.Message) error {
	if err := CheckID(pointer+"/id", m.ID); err != nil {
		return err
	}
	if err := CheckOptionalID(pointer+"/toolCallId", m.ToolCallID); err != nil {
		return err
	}
	for i, call := range m.ToolCalls {
		if err := CheckID(fmt.Sprintf("%s/toolCalls/%d/id", pointer, i), call.ID); err != nil {
			return err
		}
	}
	return nil
}

// CheckOptionalID validates an ID like CheckID unless it is empty.
func CheckOptionalID(pointer, id string) error {
	if id == "" {
		return nil
	}
	return CheckID(pointer, id)
}

// CheckRun validates the IDs of a run and its thread. It refuses the mark of a segment, which only
// the server puts into run IDs: otherwise a client could address a segment directly.
func CheckRun(run stream.Run) error {
	if err := CheckID("/threadId", run.Thread.ID); err != nil {
		return err
	}
	if strings.Contains(run.ID, stream.SegmentMark) {
		return problem.BadRequest("invalid_input", "/runId", "must not have the suffix of a segment")
	}
	return CheckID("/runId", run.ID)
}

// CheckID validates an ID of a client. It must not be empty, have more than stream.MaxIDBytes, or
// contain control characters or invalid UTF-8. pointer is the JSON pointer to the ID in the
// request; "" = the ID is in the path.
func CheckID(pointer, id string) error {
	switch {
	case id == "":
		return problem.BadRequest("invalid_input", pointer, "must not be empty")
	case len(id) > stream.MaxIDBytes:
		return problem.BadRequest("invalid_input", pointer, "may have at most 1000 bytes")
	case strings.ContainsFunc(id, isForbidden): // also if the ID is not UTF-8
		return problem.BadRequest("invalid_input", pointer, "must be Unicode text without control characters")
	}
	return nil
}

// CheckSubject validates the subject in the path: CheckID, with the bound of the names of callers.
func CheckSubject(subject string) error {
	if len(subject) > auth.MaxNameBytes {
		return problem.BadRequest("invalid_input", "/subject", fmt.Sprintf("may have at most %d bytes", auth.MaxNameBytes))
	}
	return CheckID("/subject", subject)
}

// isForbidden reports whether an ID must not have a rune. U+FFFD is forbidden because it replaces
// invalid UTF-8: IDs that differ only there would be equal.
func isForbidden(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }
