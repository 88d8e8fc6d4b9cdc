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

// contentParts is the content of a user message, without the parts that the
// API has no place for or would refuse.
func contentParts(parts []llm.Part) []openai.ChatCompletionContentPartUnionParam {
	var params []openai.ChatCompletionContentPartUnionParam
	for _, part := range parts {
		switch part := part.(type) {
		case llm.Text:
			if part.Text != "" {
				params = append(params, openai.TextContentPart(part.Text))
			}
		case llm.Media:
			if union, ok := mediaPart(part); ok {
				params = append(params, union)
			}
		}
	}
	return params
}

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

// imageTypes are what the API takes inline; it refuses the request for any other.
var imageTypes = []string{"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}

func imagePart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	address := media.URL
	if media.Data != "" {
		if !slices.Contains(imageTypes, strings.ToLower(media.MIME)) {
			return openai.ChatCompletionContentPartUnionParam{}, false
		}
		address = dataURL(media)
	}
	parsed, err := url.Parse(address)
	if err != nil || !fetchable(parsed) {
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address}), true
}

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

// audioFormats are the two that the API takes, by their many media types.
var audioFormats = map[string]string{
	"audio/mp3":      "mp3",
	"audio/mpeg":     "mp3",
	"audio/vnd.wave": "wav",
	"audio/wav":      "wav",
	"audio/wave":     "wav",
	"audio/x-wav":    "wav",
}

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

// filePart sends a PDF, the one kind of file that the API takes, as a file, and text as text.
func filePart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	switch {
	case wire.IsText(media):
		return textPart(media)
	case media.Data == "" || !wire.IsPDF(media):
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

func textPart(media llm.Media) (openai.ChatCompletionContentPartUnionParam, bool) {
	text, ok := wire.PlainText(media)
	if !ok {
		return openai.ChatCompletionContentPartUnionParam{}, false
	}
	if media.Name == "" {
		return openai.TextContentPart(text), true
	}
	return openai.TextContentPart(media.Name + ":\n\n" + text), true
}

func dataURL(media llm.Media) string {
	return "data:" + media.MIME + ";base64," + media.Data
}
