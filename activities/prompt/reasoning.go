package prompt

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// SealReasoning is what a provider wants back, as the encrypted value of a message: behind the provider's
// name, since it means nothing to others. "" if it wants nothing back.
func SealReasoning(provider string, data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	return provider + ":" + string(data)
}

// UnsealReasoning is the block that a reasoning message holds. A value that is none of ours is left out.
func UnsealReasoning(m agui.Message) llm.Reasoning {
	block := llm.Reasoning{Text: m.Content.Text()}
	if provider, data, ok := strings.Cut(m.EncryptedValue, ":"); ok && json.Valid([]byte(data)) {
		block.Provider, block.Data = provider, json.RawMessage(data)
	}
	return block
}
