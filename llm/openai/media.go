package openai

import (
	"encoding/base64"
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// contentParts returns the content of a user message, without the parts that the
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
			if union, ok := mediaPart(wire.Inline(part)); ok {
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
	address, ok := imageAddress(media)
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: address}), ok
}

// imageAddress returns the URL of an image that the API can read.
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
	if text, ok := documentText(media); ok {
		return openai.TextContentPart(text), true
	}
	kind, _, err := mime.ParseMediaType(media.MIME)
	if media.Data == "" || err != nil || kind != "application/pdf" {
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

// documentText returns a document that is text, under its name.
func documentText(media llm.Media) (string, bool) {
	kind, _, err := mime.ParseMediaType(media.MIME)
	if err != nil || !strings.HasPrefix(kind, "text/") && kind != "application/json" {
		return "", false
	}
	text, err := base64.StdEncoding.DecodeString(media.Data)
	if err != nil || len(text) == 0 || !utf8.Valid(text) {
		return "", false
	}
	if media.Name == "" {
		return string(text), true
	}
	return media.Name + ":\n\n" + string(text), true
}

func dataURL(media llm.Media) string {
	return "data:" + media.MIME + ";base64," + media.Data
}

// Unusable implements [llm.MediaReader]. Results of tools are text alone.
func (m *Model) Unusable(_ string, role llm.Role, media llm.Media) llm.Unusable {
	reason := wire.Unusable(media, func(media llm.Media) bool { _, ok := mediaPart(media); return ok })
	if reason == "" && role == llm.RoleTool {
		return llm.UnusableInResult
	}
	return reason
}
