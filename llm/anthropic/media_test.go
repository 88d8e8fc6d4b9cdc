package anthropic

import (
	"testing"

	"github.com/perdure/perdure/llm"
)

func TestUnusableMedia(t *testing.T) {
	t.Parallel()
	const inline = "JVBERi0xLjQ="
	for name, tt := range map[string]struct {
		media llm.Media
		want  llm.Unusable
	}{
		"PDF by URL":    {llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf"}, ""},
		"text by URL":   {llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", URL: "https://x.example/a.txt"}, llm.UnusableURL},
		"text":          {llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "aGk="}, ""},
		"Word document": {llm.Media{Kind: llm.MediaDocument, MIME: "application/msword", URL: "https://x.example/a.doc"}, llm.UnusableType},
		"sound":         {llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: inline}, llm.UnusableType},
		"PDF over FTP":  {llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "ftp://x.example/a.pdf"}, llm.UnusableAddress},
		"no base64":     {llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "%"}, llm.UnusableData},
	} {
		if got := new(Model).Unusable("claude", llm.RoleUser, tt.media); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if sent := len(userBlocks([]llm.Part{tt.media})) == 1; sent != (tt.want == "") {
			t.Errorf("%s: is sent = %v, want %v", name, sent, tt.want == "")
		}
	}
}
