package narration

import "strings"

// toolCall is a tool call that is being told.
type toolCall struct {
	index                int // the provider's: need not begin at 0, nor come in order
	id, providerID, name string
	arguments            strings.Builder
	predicted            []*predicted
	followed             int // so much of the arguments was looked at
}
