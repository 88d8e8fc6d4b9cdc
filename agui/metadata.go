package agui

import "encoding/json"

// Metadata is an open JSON object. The key "ag-ui" belongs to the protocol; other keys should have
// a vendor prefix.
type Metadata map[string]json.RawMessage
