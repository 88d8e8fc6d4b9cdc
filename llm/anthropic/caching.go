package anthropic

import "github.com/anthropics/anthropic-sdk-go"

// cache marks where the prompt is to be kept for the next request, which
// begins as this one does: behind the tools, the instructions, and the
// conversation so far. These are the four marks that the API takes.
//
// The end of the request before is marked again. From the mark at its end the
// API looks back some twenty blocks for what it has kept, and a turn with many
// calls is longer than that.
func cache(params *anthropic.MessageNewParams) {
	if last := len(params.Tools) - 1; last >= 0 {
		params.Tools[last].OfTool.CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	if last := len(params.System) - 1; last >= 0 {
		params.System[last].CacheControl = anthropic.NewCacheControlEphemeralParam()
	}
	marks := 2
	for i := len(params.Messages) - 1; i >= 0 && marks > 0; i-- {
		if params.Messages[i].Role == anthropic.MessageParamRoleUser {
			mark(params.Messages[i].Content)
			marks--
		}
	}
}

// mark puts the mark at the end of a turn of the user, all of whose blocks can
// have one.
func mark(blocks []anthropic.ContentBlockParamUnion) {
	if control := blocks[len(blocks)-1].GetCacheControl(); control != nil {
		*control = anthropic.NewCacheControlEphemeralParam()
	}
}
