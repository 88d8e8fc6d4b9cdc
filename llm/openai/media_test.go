package openai

import (
	"testing"

	"github.com/perdure/perdure/llm"
)

const inlinePDF = "JVBERi0xLjQ="

func TestUnusableMedia(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		media                   llm.Media
		role                    llm.Role
		wantChat, wantResponses llm.Unusable
	}{
		"image by URL":         {media: llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}},
		"inline PDF":           {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: inlinePDF}},
		"PDF as a data URL":    {media: llm.Media{Kind: llm.MediaDocument, URL: "data:application/pdf;base64," + inlinePDF}},
		"PDF by URL":           {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf"}, wantChat: llm.UnusableURL},
		"PDF over FTP":         {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "ftp://x.example/a.pdf"}, wantChat: llm.UnusableAddress, wantResponses: llm.UnusableAddress},
		"Word document":        {media: llm.Media{Kind: llm.MediaDocument, MIME: "application/msword", Data: inlinePDF}, wantChat: llm.UnusableType},
		"inline sound":         {media: llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: inlinePDF}, wantResponses: llm.UnusableType},
		"sound by URL":         {media: llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", URL: "https://x.example/a.wav"}, wantChat: llm.UnusableURL, wantResponses: llm.UnusableType},
		"film":                 {media: llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: inlinePDF}, wantChat: llm.UnusableType, wantResponses: llm.UnusableType},
		"invalid image":        {media: llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "%%%"}, wantChat: llm.UnusableData, wantResponses: llm.UnusableData},
		"invalid text":         {media: llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="}, wantChat: llm.UnusableData, wantResponses: llm.UnusableData},
		"image from a tool":    {media: llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}, role: llm.RoleTool, wantChat: llm.UnusableInResult},
		"film from a tool":     {media: llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: inlinePDF}, role: llm.RoleTool, wantChat: llm.UnusableType, wantResponses: llm.UnusableType},
		"unknown kind":         {media: llm.Media{Kind: "smell", MIME: "x/y", Data: inlinePDF}, wantChat: llm.UnusableType, wantResponses: llm.UnusableType},
		"image of a rare sort": {media: llm.Media{Kind: llm.MediaImage, MIME: "image/tiff", Data: inlinePDF}, wantChat: llm.UnusableType, wantResponses: llm.UnusableType},
	} {
		if got := new(Model).Unusable("m", tt.role, tt.media); got != tt.wantChat {
			t.Errorf("%s, Chat Completions: %q, want %q", name, got, tt.wantChat)
		}
		if got := new(Responses).Unusable("m", tt.role, tt.media); got != tt.wantResponses {
			t.Errorf("%s, Responses: %q, want %q", name, got, tt.wantResponses)
		}
		if tt.role == llm.RoleTool {
			continue
		}
		if sent := len(contentParts([]llm.Part{tt.media})) == 1; sent != (tt.wantChat == "") {
			t.Errorf("%s, Chat Completions: is sent = %v, want %v", name, sent, tt.wantChat == "")
		}
		if sent := len(inputContent([]llm.Part{tt.media})) == 1; sent != (tt.wantResponses == "") {
			t.Errorf("%s, Responses: is sent = %v, want %v", name, sent, tt.wantResponses == "")
		}
	}
}
