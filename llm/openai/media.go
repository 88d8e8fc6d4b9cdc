package openai

import (
	"net/url"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// contentParts returns the content of a user message in Chat Completions. It omits parts that the
// API does not support or would reject.
func contentParts(parts []llm.Part) []openai.ChatCompletionContentPartUnionParam {
	var params []openai.ChatCompletionContentPartUnionParam
	for _, part := range parts {
		switch part := part.(type) {
		case llm.Text:
			if part.Text != "" {
				params = append(params, openai.TextContentPart(part.Text))
			}
		case llm.Media:
			if union, ok := mediaPart(wire.Inline(part)); ok {
				params = append(params, union)
			}
		}
	}
	return params
}

// mediaPart returns the part of a media. It returns false if the API does not support the media.
func mediaPart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	if media.Data != "" && !wire.IsBase64(media.Data) {
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
	switch media.Kind {
	case llm.MediaImage:
		return imagePart(media)
	case llm.MediaAudio:
		return audioPart(media)
	case llm.MediaDocument:
		return filePart(media)
	default:
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
}

// imageTypes are the media types of inline images that the API accepts. It rejects a request with
// another one.
var imageTypes = []string{"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}

// imagePart returns the part of an image, see imageAddress.
func imagePart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	address, ok := imageAddress(media)
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address}), ok
}

// imageAddress returns the URL of an image, a data: URL for an inline image. It returns false if
// the API cannot read it. Both OpenAI APIs use it.
func imageAddress(media llm.Media) (string, bool) {
	address := media.URL
	if media.Data != "" {
		if !slices.Contains(imageTypes, strings.ToLower(media.MIME)) {
			return "", false
		}
		address = dataURL(media)
	}
	parsed, err := url.Parse(address)
	return address, err == nil && fetchable(parsed)
}

// fetchable reports whether the URL is http or https with a host, or a data: URL of an image.
func fetchable(address *url.URL) bool {
	switch address.Scheme {
	case "http", "https":
		return address.Host != ""
	case "data":
		return strings.HasPrefix(address.Opaque, "image/")
	default:
		return false
	}
}

// audioFormats maps media types to the two audio formats that the API accepts.
var audioFormats = map[string]string{
	"audio/mp3":      "mp3",
	"audio/mpeg":     "mp3",
	"audio/vnd.wave": "wav",
	"audio/wav":      "wav",
	"audio/wave":     "wav",
	"audio/x-wav":    "wav",
}

// audioPart returns the part of an audio file. The API accepts audio only inline.
func audioPart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	format, ok := audioFormats[strings.ToLower(media.MIME)]
	if !ok || media.Data == "" {
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
	return openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{
		Data:   media.Data,
		Format: format,
	}), true
}

// filePart returns the part of a document: a PDF, the only file type that the API accepts, as a
// file, and a text document as text.
func filePart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	if text, ok := documentText(media); ok {
		return openai.TextContentPart(text), true
	}
	if media.Data == "" || !wire.IsPDF(media) {
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
	filename := media.Name
	if filename == "" {
		filename = "document"
	}
	return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
		FileData: param.NewOpt(dataURL(media)),
		Filename: param.NewOpt(filename),
	}), true
}

// documentText returns the content of a text document, with its name as a heading. It returns false
// for other documents, and for text that is not inline or not UTF-8.
func documentText(media llm.Media) (string, bool) {
	if !wire.IsText(media) {
		return "", false
	}
	text, ok := wire.PlainText(media)
	if ok && media.Name != "" {
		text = media.Name + ":\n\n" + text
	}
	return text, ok
}

// dataURL returns the data: URL of inline media.
func dataURL(media llm.Media) string {
	return "data:" + media.MIME + ";base64," + media.Data
}

// Unusable implements [llm.MediaReader]. Tool results accept only text.
func (m *Model) Unusable(_ string, role llm.Role, media llm.Media) llm.Unusable {
	reason := wire.Unusable(media, func(media llm.Media) bool { _, ok := mediaPart(media); return ok })
	if reason == "" && role == llm.RoleTool {
		return llm.UnusableInResult
	}
	return reason
}
