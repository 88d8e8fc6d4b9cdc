package anthropic

import (
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// seal is what a block of thinking wants back, as [llm.Reasoning.Data]. The text
// of a signed block is the block's own.
type seal struct {
	Signature string `json:"signature,omitempty"` // of a block that can be read
	Redacted  string `json:"redacted,omitempty"`  // a block that cannot
	wire.Place
}

// unseal reads the data of a block, if it is one of ours.
func (m *Model) unseal(block llm.Reasoning) (seal, bool) {
	var s seal
	ok := block.Provider == m.config.Provider && json.Unmarshal(block.Data, &s) == nil && (s.Signature != "") != (s.Redacted != "")
	return s, ok
}

func (m *Model) placeOf(block llm.Reasoning) (wire.Place, bool) {
	s, ok := m.unseal(block)
	return s.Place, ok
}

// thinkingBlock returns a block as it came.
func (m *Model) thinkingBlock(block llm.Reasoning) anthropic.ContentBlockParamUnion {
	s, _ := m.unseal(block)
	if s.Redacted != "" {
		return anthropic.NewRedactedThinkingBlock(s.Redacted)
	}
	return anthropic.NewThinkingBlock(s.Signature, block.Text)
}

// budgets are the tokens for models that want a number.
var budgets = map[string]int64{"minimal": minBudget, "low": 4_096, "medium": 10_000, "high": 24_000}

// minBudget is the least that the API takes.
const minBudget = 1_024

// think asks for thinking, if there is an effort or thinking to go on with.
func think(params *anthropic.MessageNewParams, effort string) {
	model := generationOf(params.Model)
	if model.adapts() {
		adapt(params, effort)
		return
	}
	// The answer needs room beside the thinking.
	budget := min(budgets[effort], params.MaxTokens/2)
	if model.thinks() && budget >= minBudget {
		params.Thinking = anthropic.ThinkingConfigParamOfEnabled(budget)
	}
}

func adapt(params *anthropic.MessageNewParams, effort string) {
	adaptive := &anthropic.ThinkingConfigAdaptiveParam{}
	if effort != "" {
		adaptive.Display = anthropic.ThinkingConfigAdaptiveDisplaySummarized // the default of some is nothing to read
		params.OutputConfig.Effort = anthropic.OutputConfigEffort(effort)
		if effort == "minimal" {
			params.OutputConfig.Effort = anthropic.OutputConfigEffortLow // the least that the API knows
		}
		params.Thinking.OfAdaptive = adaptive
	}
	if bound(params) {
		// Instructions and tools may have changed since: then the thinking is to be
		// passed over, and not the request refused. These models think in any case.
		adaptive.SetExtraFields(map[string]any{"block_binding": map[string]string{"prefix_mismatch_behavior": "drop_block"}})
		params.Thinking.OfAdaptive = adaptive
	}
}

// bindingBeta is the beta that block_binding belongs to.
const bindingBeta = "thinking-binding-controls-2026-08-01"

// bound reports whether thinking goes back that the model takes only behind the
// conversation that it was thought in.
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
