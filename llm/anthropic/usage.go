package anthropic

import "github.com/perdure/perdure/llm"

// usage accumulates the token counts of a completion. Counts of the API are cumulative, so the last
// reported value of each count is valid.
type usage struct{ counts }

// note records the counts that c reports.
func (u *usage) note(c counts) {
	for _, count := range []struct{ into, from **int64 }{
		{&u.Input, &c.Input},
		{&u.CacheRead, &c.CacheRead},
		{&u.CacheWrite, &c.CacheWrite},
		{&u.Output, &c.Output},
		{&u.Details.Thinking, &c.Details.Thinking},
	} {
		if *count.from != nil && **count.from >= 0 {
			*count.into = *count.from
		}
	}
}

// total returns the usage in Perdure's terms. The API's input_tokens exclude tokens read from and
// written to the cache; [llm.Usage.Input] includes them. Total stays nil, because the API does not
// report it.
func (u *usage) total() llm.Usage {
	total := llm.Usage{Output: u.Output, Reasoning: u.Details.Thinking, CachedInput: u.CacheRead, CacheWrite: u.CacheWrite}
	if u.Input != nil {
		input := *u.Input
		for _, part := range []*int64{u.CacheRead, u.CacheWrite} {
			if part != nil {
				input += *part
			}
		}
		total.Input = &input
	}
	return total
}
