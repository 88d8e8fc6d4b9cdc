package prompt

import (
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
)

// Some providers want their reasoning back in later requests, as opaque data. The conversation
// stores it in AG-UI's encrypted value of a reasoning message, as "provider:data".

// SealReasoning returns the encrypted value for the data that a provider wants back; "" = it wants
// nothing back. The provider's name precedes the data, because the data means nothing to other
// providers.
func SealReasoning(provider string, data json.RawMessage) string {
	if len(data) == 0 {
		return ""
	}
	return provider + ":" + string(data)
}

// UnsealReasoning returns the reasoning block of a reasoning message. An encrypted value in another
// format, for instance of another server, is left out; the text stays.
func UnsealReasoning(m agui.Message) llm.Reasoning {
	block := llm.Reasoning{Text: m.Content.Text()}
	if provider, data, ok := strings.Cut(m.EncryptedValue, ":"); ok && json.Valid([]byte(data)) {
		block.Provider, block.Data = provider, json.RawMessage(data)
	}
	return block
}
