package gemini

import (
	"testing"

	"github.com/perdure/perdure/llm"
)

func TestUnusableMedia(t *testing.T) {
	t.Parallel()
	const old, current = "gemini-2.5-flash", "gemini-3-pro"
	picture := llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "iVBORw0KGgo="}
	distant := llm.Media{Kind: llm.MediaImage, MIME: "image/png", URL: "https://x.example/i.png"}
	text := llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "aGk="}
	for name, tt := range map[string]struct {
		model string
		role  llm.Role
		media llm.Media
		want  llm.Unusable
	}{
		"image":                        {current, llm.RoleUser, picture, ""},
		"image by URL":                 {current, llm.RoleUser, distant, ""},
		"image from a tool":            {current, llm.RoleTool, picture, ""},
		"image by URL from a tool":     {current, llm.RoleTool, distant, llm.UnusableURL},
		"text from a tool":             {current, llm.RoleTool, text, llm.UnusableInResult},
		"image from a tool, old model": {old, llm.RoleTool, picture, llm.UnusableInResult},
		"text by URL":                  {current, llm.RoleUser, llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", URL: "https://x.example/a.txt"}, llm.UnusableURL},
		"Word document":                {current, llm.RoleUser, llm.Media{Kind: llm.MediaDocument, MIME: "application/msword", URL: "https://x.example/a.doc"}, llm.UnusableType},
	} {
		if got := new(Model).Unusable(tt.model, tt.role, tt.media); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		message := llm.Message{Role: tt.role, Parts: []llm.Part{tt.media}}
		sent := len(userParts(message.Parts)) == 1
		if tt.role == llm.RoleTool {
			sent = len(response(message, "tool", generationOf(tt.model)).Parts) == 1
		}
		if sent != (tt.want == "") {
			t.Errorf("%s: is sent = %v, want %v", name, sent, tt.want == "")
		}
	}
}
