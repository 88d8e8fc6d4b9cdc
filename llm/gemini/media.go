package gemini

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// userParts returns the content of a user message. It omits parts that the API does not support or
// would reject.
func userParts(parts []llm.Part) []part {
	var out []part
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if !wire.Blank(p.Text) {
				out = append(out, part{Text: &p.Text})
			}
		case llm.Media:
			if sent, ok := mediaPart(p); ok {
				out = append(out, sent)
			}
		}
	}
	return out
}

// mediaTypes are the media types that the API accepts for each kind of media.
var mediaTypes = map[llm.MediaKind][]string{
	llm.MediaImage:    {"image/png", "image/jpeg", "image/jpg", "image/webp", "image/heic", "image/heif"},
	llm.MediaAudio:    {"audio/wav", "audio/x-wav", "audio/mp3", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac", "audio/mp4", "audio/webm"},
	llm.MediaVideo:    {"video/mp4", "video/mpeg", "video/mov", "video/quicktime", "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp"},
	llm.MediaDocument: {"application/pdf"},
}

// mediaPart returns the part of a media. It returns false if the API does not support the media. A
// URL without a media type is sent, because the API determines the type.
func mediaPart(media llm.Media) (part, bool) {
	media = wire.Inline(media)
	kind, _, _ := strings.Cut(strings.ToLower(media.MIME), ";")
	if kind == "image/jpg" {
		kind = "image/jpeg"
	}
	switch {
	case media.Kind == llm.MediaDocument && wire.IsText(media):
		return textPart(media)
	case media.Data == "" && wire.IsWebURL(media) && (kind == "" || takes(media.Kind, kind)):
		return part{FileData: &file{MIMEType: kind, URI: media.URL}}, true
	case media.Data == "" || !wire.IsBase64(media.Data) || !takes(media.Kind, kind):
		return part{}, false
	}
	return part{InlineData: &blob{MIMEType: kind, Data: media.Data}}, true
}

// takes reports whether the API accepts the media type for the kind.
func takes(kind llm.MediaKind, mime string) bool { return slices.Contains(mediaTypes[kind], mime) }

// textPart returns a text document as a text part, with its name as a heading. It returns false if
// the document is blank or not UTF-8.
func textPart(media llm.Media) (part, bool) {
	text, ok := wire.PlainText(media)
	if !ok || wire.Blank(text) {
		return part{}, false
	}
	if media.Name != "" {
		text = media.Name + ":\n\n" + text
	}
	return part{Text: &text}, true
}

// Unusable implements [llm.MediaReader]. Tool results accept less than user messages, see response.
func (m *Model) Unusable(model string, role llm.Role, media llm.Media) llm.Unusable {
	reason := wire.Unusable(media, func(media llm.Media) bool { _, ok := mediaPart(media); return ok })
	switch {
	case reason != "" || role != llm.RoleTool:
		return reason
	case !generationOf(model).signs():
		return llm.UnusableInResult
	}
	if sent, ok := mediaPart(media); ok && sent.InlineData == nil {
		// The API accepts only inline media in results. A document that mediaPart sends as text has
		// no place there.
		if wire.Inline(media).Data == "" {
			return llm.UnusableURL
		}
		return llm.UnusableInResult
	}
	return ""
}
