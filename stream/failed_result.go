package stream

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
)

// MetadataFailed is the key in the metadata of a tool message whose call has failed, with the value
// true. TOOL_CALL_RESULT has no error, so clients learn of it from the metadata of the event.
const MetadataFailed = "perdure.failed"

// SetFailed makes a tool message that of a failed call.
func SetFailed(m *agui.Message, err string) {
	m.Error, m.Metadata = err, agui.Metadata{MetadataFailed: json.RawMessage("true")}
}
