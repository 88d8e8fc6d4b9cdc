package anthropic

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// userBlocks returns the content of a user message or a tool result. It omits parts that the API
// does not support or would reject.
func userBlocks(parts []llm.Part) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for _, part := range parts {
		switch part := part.(type) {
		case llm.Text:
			if !wire.Blank(part.Text) {
				blocks = append(blocks, anthropic.NewTextBlock(part.Text))
			}
		case llm.Media:
			if block, ok := mediaBlock(wire.Inline(part)); ok {
				blocks = append(blocks, block)
			}
		}
	}
	return blocks
}

// mediaBlock returns the block of an image or document. ok is false if the API does not support the
// media.
func mediaBlock(media llm.Media) (block anthropic.ContentBlockParamUnion, ok bool) {
	if media.Data != "" && !wire.IsBase64(media.Data) || media.Data == "" && !wire.IsWebURL(media) {
		return block, false
	}
	switch media.Kind {
	case llm.MediaImage:
		return imageBlock(media)
	case llm.MediaDocument:
		return documentBlock(media)
	default:
		return block, false
	}
}

// imageTypes maps the media types of inline images to those that the API accepts.
var imageTypes = map[string]string{
	"image/gif":  "image/gif",
	"image/jpeg": "image/jpeg",
	"image/jpg":  "image/jpeg",
	"image/png":  "image/png",
	"image/webp": "image/webp",
}

// imageBlock returns the block of an image. The type of an image by URL is not checked: the API
// determines it.
func imageBlock(media llm.Media) (block anthropic.ContentBlockParamUnion, ok bool) {
	if media.Data == "" {
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: media.URL}), true
	}
	kind, ok := imageTypes[strings.ToLower(media.MIME)]
	if !ok {
		return block, false
	}
	return anthropic.NewImageBlockBase64(kind, media.Data), true
}

// documentBlock returns the block of a PDF, the only file type that the API supports, or of a text
// document.
func documentBlock(media llm.Media) (block anthropic.ContentBlockParamUnion, ok bool) {
	switch {
	case wire.IsText(media):
		text, ok := wire.PlainText(media)
		if !ok || wire.Blank(text) {
			return block, false
		}
		block = anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: text})
	case !wire.IsPDF(media):
		return block, false
	case media.Data != "":
		block = anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: media.Data})
	default:
		block = anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: media.URL})
	}
	if media.Name != "" {
		block.OfDocument.Title = param.NewOpt(media.Name)
	}
	return block, true
}

// Unusable implements [llm.MediaReader]. Tool results accept the same media as user messages.
func (m *Model) Unusable(_ string, _ llm.Role, media llm.Media) llm.Unusable {
	return wire.Unusable(media, func(media llm.Media) bool { _, ok := mediaBlock(media); return ok })
}
