package anthropic

import "github.com/anthropics/anthropic-sdk-go"

// cache sets the four cache breakpoints that the API allows: after the tools, after the
// instructions, and after the last two user turns. The next request of the conversation starts with
// the same content and reads it from the cache.
//
// Two breakpoints in the conversation are necessary. From a breakpoint, the API searches about
// twenty blocks backwards for a cached prefix, and a turn with many tool calls has more blocks. The
// second breakpoint is the end of the previous request, which is cached.
func cache(params *anthropic.MessageNewParams) {
	if last := len(params.Tools) - 1; last >= 0 {
		params.Tools[last].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	if last := len(params.System) - 1; last >= 0 {
		params.System[last].CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	marks := 2 // breakpoints that remain for the conversation
	for i := len(params.Messages) - 1; i >= 0 && marks > 0; i-- {
		if params.Messages[i].Role == anthropic.MessageParamRoleUser {
			mark(params.Messages[i].Content)
			marks--
		}
	}
}

// mark sets a breakpoint on the last block of a user turn. Every block type of a user turn supports
// one.
func mark(blocks []anthropic.ContentBlockParamUnion) {
	if control := blocks[len(blocks)-1].GetCacheControl(); control != nil {
		*control = anthropic.NewCacheControlEphemeralParam()
	}
}
