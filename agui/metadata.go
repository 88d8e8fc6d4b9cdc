package agui

import "encoding/json"

// Metadata is an open JSON object. The key "ag-ui" belongs to the protocol;
// own keys should carry a vendor prefix.
type Metadata map[string]json.RawMessage
