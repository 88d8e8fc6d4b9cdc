package anthropic

import (
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// userBlocks returns the content of a user's message or of a tool's result, without
// the parts that the API has no place for or would refuse.
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

// imageTypes are what the API takes inline, by their media types.
var imageTypes = map[string]string{
	"image/gif":  "image/gif",
	"image/jpeg": "image/jpeg",
	"image/jpg":  "image/jpeg",
	"image/png":  "image/png",
	"image/webp": "image/webp",
}

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

// documentBlock sends a PDF, the one kind of file that the API takes, and text.
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

// Unusable implements [llm.MediaReader].
func (m *Model) Unusable(_ string, _ llm.Role, media llm.Media) llm.Unusable {
	return wire.Unusable(media, func(media llm.Media) bool { _, ok := mediaBlock(media); return ok })
}
