package prompt

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// partMetadata is what we read and write of a part's metadata: where the protocol says that a file's
// name belongs.
type partMetadata struct {
	Filename string `json:"filename"`
}

// Parts turns content into what models take. A part that none could use (an opaque file handle) is
// left out: it must not fail the run.
func Parts(c agui.Content) []llm.Part {
	var parts []llm.Part
	for _, p := range c.Parts() {
		switch {
		case p.Type == agui.PartText:
			parts = append(parts, llm.Text{Text: p.Text})
		case p.Source != nil:
			if media, ok := mediaOf(p); ok {
				parts = append(parts, media)
			}
		}
	}
	return parts
}

func mediaOf(p agui.ContentPart) (llm.Media, bool) {
	media := llm.Media{Kind: llm.MediaKind(p.Type), MIME: p.Source.MimeType}
	switch p.Source.Type {
	case agui.SourceData:
		media.Data = p.Source.Value
	case agui.SourceURL:
		media.URL = p.Source.Value
	}
	var metadata partMetadata
	if json.Unmarshal(p.Metadata, &metadata) == nil { // any value may stand there
		media.Name = metadata.Filename
	}
	return media, media.Data != "" || media.URL != ""
}

// ContentOf is a tool's result as the content of a message: text, unless there is more.
func ContentOf(r tools.Result) agui.Content {
	if len(r.Parts) == 0 {
		return agui.TextContent(r.Content)
	}
	var parts []agui.ContentPart
	if r.Content != "" {
		parts = append(parts, agui.TextPart(r.Content))
	}
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
			parts = append(parts, agui.TextPart(p.Text))
		case llm.Media:
			parts = append(parts, mediaPart(p))
		}
	}
	return agui.PartsContent(parts)
}

func mediaPart(m llm.Media) agui.ContentPart {
	part := agui.ContentPart{Type: agui.PartType(m.Kind), Source: &agui.PartSource{Type: agui.SourceURL, Value: m.URL, MimeType: m.MIME}}
	if m.Data != "" {
		part.Source.Type, part.Source.Value = agui.SourceData, m.Data
	}
	if m.Name != "" {
		part.Metadata, _ = json.Marshal(partMetadata{Filename: m.Name}) // text always has a JSON form
	}
	return part
}
