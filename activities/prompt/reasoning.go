package prompt

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// SealReasoning returns the data that a provider wants back, as the encrypted value of a message.
// The provider's name precedes it, because it means nothing to other providers. "" = the provider
// wants nothing back.
func SealReasoning(provider string, data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	return provider + ":" + string(data)
}

// UnsealReasoning returns the block of a reasoning message. An encrypted value in another format is
// left out.
func UnsealReasoning(m agui.Message) llm.Reasoning {
	block := llm.Reasoning{Text: m.Content.Text()}
	if provider, data, ok := strings.Cut(m.EncryptedValue, ":"); ok && json.Valid([]byte(data)) {
		block.Provider, block.Data = provider, json.RawMessage(data)
	}
	return block
}
