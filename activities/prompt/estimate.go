package prompt

import (
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Tokens are estimated, because each model counts in its own way: four ASCII characters are one
// token, any other character is one, and a message has a few more. The estimate is about 10 % too
// high for English and code, and more for other scripts.
const (
	// asciiPerToken is how many ASCII characters make one token.
	asciiPerToken = 4
	// tokensPerMessage and tokensPerTool are what a message, and a tool or tool call, take besides
	// their texts.
	tokensPerMessage = 4
	tokensPerTool    = 8
	// tokensPerMedia is what an image, or one page of another medium, takes. bytesPerMediaPage is
	// how many bytes of base64 count as a page of a document, audio or video.
	tokensPerMedia    = 1_500
	bytesPerMediaPage = 100 << 10
)

// TextTokens estimates the tokens of a text, rounded up.
func TextTokens(s string) int64 {
	var ascii, other int64
	for _, r := range s {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return (ascii+asciiPerToken-1)/asciiPerToken + other
}

// entryTokens estimates the tokens of a message with its tool calls.
func entryTokens(e snapshot.Entry) int64 {
	n := tokensPerMessage + partTokens(Parts(e.Message.Content))
	for _, c := range e.Message.ToolCalls {
		n += tokensPerTool + TextTokens(c.Name) + TextTokens(c.Arguments)
	}
	return n
}

// partTokens estimates the tokens of content. Media by URL count like one page, because their size
// is unknown.
func partTokens(parts []llm.Part) int64 {
	var n int64
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			n += TextTokens(p.Text)
		case llm.Media:
			n += tokensPerMedia
			if p.Kind != llm.MediaImage {
				n += int64(len(p.Data)/bytesPerMediaPage) * tokensPerMedia
			}
		}
	}
	return n
}

// ToolTokens estimates the tokens of the tools in a request: names, descriptions and schemas.
func ToolTokens(tools []llm.Tool) int64 {
	var n int64
	for _, t := range tools {
		n += tokensPerTool + TextTokens(t.Name) + TextTokens(t.Description) + TextTokens(string(t.Parameters))
	}
	return n
}

// RequestTokens estimates the input tokens of a request. A call whose provider reports no usage is
// charged by it.
func RequestTokens(req *llm.Request) int64 {
	n := ToolTokens(req.Tools)
	if req.Output != nil {
		n += TextTokens(string(req.Output.Schema))
	}
	for _, m := range req.Messages {
		n += tokensPerMessage + partTokens(m.Parts)
		for _, c := range m.ToolCalls {
			n += tokensPerTool + TextTokens(c.Name) + TextTokens(c.Arguments)
		}
	}
	return n
}
