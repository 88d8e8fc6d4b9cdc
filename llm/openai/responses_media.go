package openai

import (
	"mime"
	"net/url"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/llm/internal/wire"
)

// inputContent returns the content of a user message or a tool result in the Responses API. It
// omits parts that the API does not support or would reject.
func inputContent(parts []llm.Part) responses.ResponseInputMessageContentListParam {
	var params responses.ResponseInputMessageContentListParam
	for _, part := range parts {
		switch part := part.(type) {
		case llm.Text:
			if part.Text != "" {
				params = append(params, responses.ResponseInputContentParamOfInputText(part.Text))
			}
		case llm.Media:
			if union, ok := inputMedia(wire.Inline(part)); ok {
				params = append(params, union)
			}
		}
	}
	return params
}

// inputMedia returns the content of a media. It returns false if the API does not support the
// media, which is the case for audio and video.
func inputMedia(media llm.Media) (responses.ResponseInputContentUnionParam, bool) {
	var union responses.ResponseInputContentUnionParam
	if media.Data != "" && !wire.IsBase64(media.Data) {
		return union, false
	}
	switch media.Kind {
	case llm.MediaImage:
		if address, ok := imageAddress(media); ok {
			union.OfInputImage = &responses.ResponseInputImageParam{ImageURL: param.NewOpt(address), Detail: responses.ResponseInputImageDetailAuto}
		}
	case llm.MediaDocument:
		if text, ok := documentText(media); ok {
			return responses.ResponseInputContentParamOfInputText(text), true
		}
		union.OfInputFile = inputFile(media)
	}
	return union, union.OfInputImage != nil || union.OfInputFile != nil
}

// fileTypes maps the media types of the documents that the API reads, apart from text, to the file
// extensions that it requires. It rejects a request with another type.
var fileTypes = map[string]string{
	"application/pdf":                         ".pdf",
	"application/msword":                      ".doc",
	"application/rtf":                         ".rtf",
	"application/vnd.ms-excel":                ".xls",
	"application/vnd.ms-powerpoint":           ".ppt",
	"application/vnd.oasis.opendocument.text": ".odt",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
}

// inputFile returns the content of a document, inline or by URL; nil if the API does not read it.
// An inline file gets the extension of its type.
func inputFile(media llm.Media) *responses.ResponseInputFileParam {
	kind, _, err := mime.ParseMediaType(media.MIME)
	extension, ok := fileTypes[kind]
	if err != nil || !ok {
		return nil
	}
	if media.Data == "" {
		address, err := url.Parse(media.URL)
		if err != nil || address.Host == "" || !slices.Contains([]string{"http", "https"}, address.Scheme) {
			return nil
		}
		return &responses.ResponseInputFileParam{FileURL: param.NewOpt(media.URL)}
	}
	name := media.Name
	if name == "" {
		name = "document"
	}
	if !strings.HasSuffix(strings.ToLower(name), extension) {
		name += extension
	}
	return &responses.ResponseInputFileParam{FileData: param.NewOpt(dataURL(media)), Filename: param.NewOpt(name)}
}

// outputContent converts the content of a tool result to the SDK's types for it. The contents are
// equal on the wire, but the SDK defines separate types.
func outputContent(content responses.ResponseInputMessageContentListParam) []responses.ResponseFunctionCallOutputItemUnionParam {
	params := make([]responses.ResponseFunctionCallOutputItemUnionParam, 0, len(content))
	for _, part := range content {
		var union responses.ResponseFunctionCallOutputItemUnionParam
		switch {
		case part.OfInputText != nil:
			union.OfInputText = &responses.ResponseInputTextContentParam{Text: part.OfInputText.Text}
		case part.OfInputImage != nil:
			union.OfInputImage = &responses.ResponseInputImageContentParam{ImageURL: part.OfInputImage.ImageURL}
		case part.OfInputFile != nil:
			file := part.OfInputFile
			union.OfInputFile = &responses.ResponseInputFileContentParam{FileData: file.FileData, FileURL: file.FileURL, Filename: file.Filename}
		}
		params = append(params, union)
	}
	return params
}

// Unusable implements [llm.MediaReader]. Tool results accept the same media as user messages.
func (r *Responses) Unusable(_ string, _ llm.Role, media llm.Media) llm.Unusable {
	return wire.Unusable(media, func(media llm.Media) bool { _, ok := inputMedia(media); return ok })
}
