package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// seal is the [llm.Reasoning.Data] of a thinking block: what the API requires to accept the block
// again. Exactly one of Signature and Redacted is set. The visible thinking is in
// [llm.Reasoning.Text].
type seal struct {
	Signature string `json:"signature,omitempty"` // signature of a visible block
	Redacted  string `json:"redacted,omitempty"`  // encrypted content of a redacted_thinking block
	wire.ItemPosition
}

// unseal decodes the data of a block. It returns false if the block is from another provider or is
// not valid; clients can change the data.
func (m *Model) unseal(block llm.Reasoning) (seal, bool) {
	var s seal
	ok := block.Provider == m.config.Provider && json.Unmarshal(block.Data, &s) == nil && (s.Signature != "") != (s.Redacted != "")
	return s, ok
}

// placeOf returns the position of a block for [wire.Weave].
func (m *Model) placeOf(block llm.Reasoning) (wire.ItemPosition, bool) {
	s, ok := m.unseal(block)
	return s.ItemPosition, ok
}

// thinkingBlock returns the API block of a reasoning block for which unseal succeeds.
func (m *Model) thinkingBlock(block llm.Reasoning) anthropic.ContentBlockParamUnion {
	s, _ := m.unseal(block)
	if s.Redacted != "" {
		return anthropic.NewRedactedThinkingBlock(s.Redacted)
	}
	return anthropic.NewThinkingBlock(s.Signature, block.Text)
}

// budgets map efforts to the token budgets of models without adaptive thinking.
var budgets = map[string]int64{"minimal": minBudget, "low": 4_096, "medium": 10_000, "high": 24_000}

// minBudget is the minimum of budget_tokens that the API accepts.
const minBudget = 1_024

// think enables thinking if the request has an effort and the model supports it.
func think(params *anthropic.MessageNewParams, effort string) {
	model := generationOf(params.Model)
	if model.adapts() {
		adapt(params, effort)
		return
	}
	// The budget counts against max_tokens. At least half remains for the answer.
	budget := min(budgets[effort], params.MaxTokens/2)
	if model.thinks() && budget >= minBudget {
		params.Thinking = anthropic.ThinkingConfigParamOfEnabled(budget)
	}
}

// adapt enables adaptive thinking. Without an effort it only adds the option for bound thinking
// blocks.
func adapt(params *anthropic.MessageNewParams, effort string) {
	adaptive := &anthropic.ThinkingConfigAdaptiveParam{}
	if effort != "" {
		// The default of some models is to return no readable thinking.
		adaptive.Display = anthropic.ThinkingConfigAdaptiveDisplaySummarized
		params.OutputConfig.Effort = anthropic.OutputConfigEffort(effort)
		if effort == "minimal" {
			params.OutputConfig.Effort = anthropic.OutputConfigEffortLow // the API's lowest effort
		}
		params.Thinking.OfAdaptive = adaptive
	}
	if bound(params) {
		// If instructions or tools have changed, the API should drop the thinking blocks and not
		// reject the request. These models always think, so enabling it here changes nothing else.
		adaptive.SetExtraFields(map[string]any{"block_binding": map[string]string{"prefix_mismatch_behavior": "drop_block"}})
		params.Thinking.OfAdaptive = adaptive
	}
}

// bindingBeta is the value of the anthropic-beta header that block_binding requires.
const bindingBeta = "thinking-binding-controls-2026-08-01"

// bound reports whether the request contains thinking blocks that the model accepts only after the
// conversation in which they were produced.
func bound(params *anthropic.MessageNewParams) bool {
	if !generationOf(params.Model).binds() {
		return false
	}
	for _, message := range params.Messages {
		for _, block := range message.Content {
			if block.OfThinking != nil || block.OfRedactedThinking != nil {
				return true
			}
		}
	}
	return false
}
