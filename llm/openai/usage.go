package openai

import "github.com/perdure/perdure/llm"

// chatUsage is the usage object of Chat Completions.
type chatUsage struct {
	Prompt        integer `json:"prompt_tokens"`
	PromptDetails struct {
		Cached     integer `json:"cached_tokens"`
		CacheWrite integer `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Completion        integer `json:"completion_tokens"`
	CompletionDetails struct {
		Reasoning integer `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Total integer `json:"total_tokens"`
}

// counts returns the usage in Perdure's terms.
func (u chatUsage) counts() llm.Usage {
	return llm.Usage{
		Input:       u.Prompt.count(),
		Output:      u.Completion.count(),
		Total:       u.Total.count(),
		Reasoning:   u.CompletionDetails.Reasoning.count(),
		CachedInput: u.PromptDetails.Cached.count(),
		CacheWrite:  u.PromptDetails.CacheWrite.count(),
	}
}

// responseUsage is the usage object of the Responses API.
type responseUsage struct {
	Input        integer `json:"input_tokens"`
	InputDetails object[struct {
		Cached     integer `json:"cached_tokens"`
		CacheWrite integer `json:"cache_write_tokens"`
	}] `json:"input_tokens_details"`
	Output        integer `json:"output_tokens"`
	OutputDetails object[struct {
		Reasoning integer `json:"reasoning_tokens"`
	}] `json:"output_tokens_details"`
	Total integer `json:"total_tokens"`
}

// counts returns the usage in Perdure's terms.
func (u responseUsage) counts() llm.Usage {
	return llm.Usage{
		Input:       u.Input.count(),
		Output:      u.Output.count(),
		Total:       u.Total.count(),
		Reasoning:   u.OutputDetails.value.Reasoning.count(),
		CachedInput: u.InputDetails.value.Cached.count(),
		CacheWrite:  u.InputDetails.value.CacheWrite.count(),
	}
}
