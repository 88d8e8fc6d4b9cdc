package prompt

import (
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream/snapshot"
)

// Tokens are estimated, since each model counts its own way and none can be asked: four ASCII characters are one,
// any other character is one by itself, and what stands around a message is a few. English and code come out some
// 10 % too high, other scripts more; too low a bound costs memory, too high a one a call that is refused.
const (
	asciiPerToken     = 4
	tokensPerMessage  = 4
	tokensPerTool     = 8
	tokensPerMedia    = 1_500
	bytesPerMediaPage = 100 << 10 // of base64, for what has pages or a length
)

// TextTokens estimates a text.
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

// entryTokens estimates a message as the model is sent it.
func entryTokens(e snapshot.Entry) int64 {
	n := tokensPerMessage + partTokens(Parts(e.Message.Content))
	for _, c := range e.Message.ToolCalls {
		n += tokensPerTool + TextTokens(c.Name) + TextTokens(c.Arguments)
	}
	return n
}

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

func ToolTokens(tools []llm.Tool) int64 {
	var n int64
	for _, t := range tools {
		n += tokensPerTool + TextTokens(t.Name) + TextTokens(t.Description) + TextTokens(string(t.Parameters))
	}
	return n
}

// RequestTokens estimates a request as the model is sent it.
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
