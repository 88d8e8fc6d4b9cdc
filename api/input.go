package api

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
)

// decodeInput decodes and checks an input, of any transport.
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

// told bounds how many unknown members of an input are logged, maxPointer the length of each
// pointer.
const (
	told       = 5
	maxPointer = 100
)

// strip removes the members of an input that this version does not know: they do not make it
// invalid.
func (s *Server) strip(ctx context.Context, input *agui.RunAgentInput) {
	warnings := agui.StripInput(input)
	if len(warnings) == 0 {
		return
	}
	var at []string
	for _, w := range warnings[:min(told, len(warnings))] {
		at = append(at, w.Pointer[:min(maxPointer, len(w.Pointer))])
	}
	s.logger.WarnContext(ctx, "the input has members that this server does not know and ignores", "count", len(warnings), "at", at)
}
