package anthropic

import "github.com/perdure/perdure/llm"

// usage is what was reported so far. The last report of a count stands: the
// numbers at the end of a message include those at its beginning.
type usage struct{ counts }

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

// total returns the usage by our account. The API's input_tokens leave out what the
// cache has to do with.
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
