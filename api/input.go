package api

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// decodeInput decodes and validates a RunAgentInput of any transport: its syntax, its IDs, the
// length of its lists, and its protocol version. A version that cannot be parsed, or none, is a
// client before AG-UI 1.0. Another major version is a 400 unsupported_protocol_version.
func decodeInput(body []byte) (*agui.RunAgentInput, error) {
	input, err := agui.DecodeInput(body)
	if err != nil {
		return nil, err
	}
	if err := request.CheckInputIDs(input); err != nil {
		return nil, err
	}
	if major, _, ok := agui.ParseVersion(input.ProtocolVersion); ok && major != 1 {
		return nil, problem.BadRequest("unsupported_protocol_version", "/protocolVersion", fmt.Sprintf("this server speaks AG-UI %s", agui.Version))
	}
	return input, nil
}

// maxLoggedPointers bounds how many unknown members of an input are logged. maxPointerBytes bounds
// the length of each pointer, in bytes. Without the bounds a client could fill the process's log
// with member names.
const (
	maxLoggedPointers = 5
	maxPointerBytes   = 100
)

// strip removes the members of an input that this version of AG-UI does not have, and logs a
// warning with their pointers. Such members do not make an input invalid, because newer clients
// send them.
func (s *Server) strip(ctx context.Context, input *agui.RunAgentInput) {
	warnings := agui.StripInput(input)
	if len(warnings) == 0 {
		return
	}
	var pointers []string
	for _, w := range warnings[:min(maxLoggedPointers, len(warnings))] {
		pointers = append(pointers, w.Pointer[:min(maxPointerBytes, len(w.Pointer))])
	}
	s.logger.WarnContext(ctx, "the input has members that this server does not know and ignores", "count", len(warnings), "at", pointers)
}
