package narration

import (
	"encoding/json"
	"strings"
)

// toolCall is a tool call that the model writes.
type toolCall struct {
	index                int // the provider's: it need not begin at 0, nor come in order
	id, providerID, name string
	arguments            strings.Builder
	predicted            []*predicted
	followed             int // how many bytes of the arguments were read for predictions
}

// predicted is a member of the state that follows an argument of one call.
type predicted struct {
	argument, path string
	length         int // of the value that was told last; 0 = none
	last           json.RawMessage
}
