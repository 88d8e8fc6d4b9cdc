package openai

import (
	"testing"

	"github.com/perdure/perdure/llm"
)

const inlinePDF = "JVBERi0xLjQ="

func TestUnusableMedia(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		media           llm.Media
		role            llm.Role
		chat, responses llm.Unusable
	}{
		"image by URL":         {media: llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}},
		"inline PDF":           {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: inlinePDF}},
		"PDF as a data URL":    {media: llm.Media{Kind: llm.MediaDocument, URL: "data:application/pdf;base64," + inlinePDF}},
		"PDF by URL":           {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf"}, chat: llm.UnusableURL},
		"PDF over FTP":         {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "ftp://x.example/a.pdf"}, chat: llm.UnusableAddress, responses: llm.UnusableAddress},
		"Word document":        {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/msword", Data: inlinePDF}, chat: llm.UnusableType},
		"inline sound":         {media: llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: inlinePDF}, responses: llm.UnusableType},
		"sound by URL":         {media: llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", URL: "https://x.example/a.wav"}, chat: llm.UnusableURL, responses: llm.UnusableType},
		"film":                 {media: llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: inlinePDF}, chat: llm.UnusableType, responses: llm.UnusableType},
		"invalid image":        {media: llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "%%%"}, chat: llm.UnusableData, responses: llm.UnusableData},
		"invalid text":         {media: llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="}, chat: llm.UnusableData, responses: llm.UnusableData},
		"image from a tool":    {media: llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}, role: llm.RoleTool, chat: llm.UnusableInResult},
		"film from a tool":     {media: llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: inlinePDF}, role: llm.RoleTool, chat: llm.UnusableType, responses: llm.UnusableType},
		"unknown kind":         {media: llm.Media{Kind: "smell", MIME: "x/y", Data: inlinePDF}, chat: llm.UnusableType, responses: llm.UnusableType},
		"image of a rare sort": {media: llm.Media{Kind: llm.MediaImage, MIME: "image/tiff", Data: inlinePDF}, chat: llm.UnusableType, responses: llm.UnusableType},
	} {
		if got := new(Model).Unusable("m", tt.role, tt.media); got != tt.chat {
			t.Errorf("%s, Chat Completions: %q, want %q", name, got, tt.chat)
		}
		if got := new(Responses).Unusable("m", tt.role, tt.media); got != tt.responses {
			t.Errorf("%s, Responses: %q, want %q", name, got, tt.responses)
		}
		if tt.role == llm.RoleTool {
			continue
		}
		if sent := len(contentParts([]llm.Part{tt.media})) == 1; sent != (tt.chat == "") {
			t.Errorf("%s, Chat Completions: is sent = %v, want %v", name, sent, tt.chat == "")
		}
		if sent := len(inputContent([]llm.Part{tt.media})) == 1; sent != (tt.responses == "") {
			t.Errorf("%s, Responses: is sent = %v, want %v", name, sent, tt.responses == "")
		}
	}
}
