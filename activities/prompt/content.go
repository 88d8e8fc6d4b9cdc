package prompt

import (
	"encoding/json"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// partMetadata is the metadata of a content part that AG-UI defines for the name of a file.
type partMetadata struct {
	Filename string `json:"filename"`
}

// Parts returns content as parts of a request, in order. A part that no provider can use, such as a
// client's file handle, is left out; DroppedFrom reports it.
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

// mediaOf returns a content part with a source as media. ok is false if its source is neither data
// nor a URL.
func mediaOf(p agui.ContentPart) (llm.Media, bool) {
	media := llm.Media{Kind: llm.MediaKind(p.Type), MIME: p.Source.MimeType}
	switch p.Source.Type {
	case agui.SourceData:
		media.Data = p.Source.Value
	case agui.SourceURL:
		media.URL = p.Source.Value
	}
	// Metadata may be any JSON, so one that does not fit is no error.
	var metadata partMetadata
	if json.Unmarshal(p.Metadata, &metadata) == nil {
		media.Name = metadata.Filename
	}
	return media, media.Data != "" || media.URL != ""
}

// ContentOf returns the result of a tool as the content of a message: a text, or parts if it has
// any.
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

// mediaPart returns media as a content part. Data has precedence over a URL.
func mediaPart(m llm.Media) agui.ContentPart {
	part := agui.ContentPart{Type: agui.PartType(m.Kind), Source: &agui.PartSource{Type: agui.SourceURL, Value: m.URL, MimeType: m.MIME}}
	if m.Data != "" {
		part.Source.Type, part.Source.Value = agui.SourceData, m.Data
	}
	if m.Name != "" {
		part.Metadata, _ = json.Marshal(partMetadata{Filename: m.Name}) // a text can always be encoded
	}
	return part
}
