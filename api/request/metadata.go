package request

import (
	"fmt"

	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/stream"
)

// CheckMetadata checks the metadata of a thread. The error is a 400 whose pointer begins with
// pointer.
func CheckMetadata(pointer string, metadata map[string]string) error {
	if len(metadata) > stream.MaxMetadata {
		return problem.BadRequest("invalid_input", pointer, fmt.Sprintf("may have at most %d entries", stream.MaxMetadata))
	}
	for name, value := range metadata {
		switch {
		case name == "" || len(name) > stream.MaxMetadataName || !stream.IsPlainText(name):
			return problem.BadRequest("invalid_input", pointer, fmt.Sprintf("must have names on one line, of 1 to %d bytes", stream.MaxMetadataName))
		case len(value) > stream.MaxMetadataValue || !stream.IsPlainText(value):
			return problem.BadRequest("invalid_input", pointer+"/"+escapePointer.Replace(name), fmt.Sprintf("must be text on one line, with at most %d bytes", stream.MaxMetadataValue))
		}
	}
	return nil
}
