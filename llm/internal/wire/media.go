package wire

import (
	"encoding/base64"
	"io"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

// IsBase64 reports whether data is standard base64, as [llm.Media.Data] requires. Providers reject
// the whole request otherwise, so callers omit such a part.
func IsBase64(data string) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	return err == nil
}

// IsPDF reports whether the media type is PDF.
func IsPDF(media llm.Media) bool { return mediaType(media) == "application/pdf" }

// IsText reports whether the media is an inline text document, which every provider accepts as
// text.
func IsText(media llm.Media) bool {
	kind := mediaType(media)
	return media.Data != "" && (strings.HasPrefix(kind, "text/") || kind == "application/json")
}

// PlainText decodes a document for which [IsText] is true. It returns false if the data is empty,
// not base64, or not UTF-8.
func PlainText(media llm.Media) (string, bool) {
	text, err := base64.StdEncoding.DecodeString(media.Data)
	return string(text), err == nil && len(text) > 0 && utf8.Valid(text)
}

// Inline converts a base64 data: URL to Data. It returns other media unchanged.
func Inline(media llm.Media) llm.Media {
	rest, ok := strings.CutPrefix(media.URL, "data:")
	if !ok || media.Data != "" {
		return media
	}
	head, data, _ := strings.Cut(rest, ",")
	kind, ok := strings.CutSuffix(head, ";base64")
	if !ok {
		return media
	}
	media.MIME, media.Data, media.URL = kind, data, ""
	return media
}

// IsWebURL reports whether a provider can try to fetch the media: its URL is http or https with a
// host.
func IsWebURL(media llm.Media) bool {
	address, err := url.Parse(media.URL)
	return err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// Unusable returns why a provider omits the media, or "" if it sends it. takes reports whether the
// provider sends given media. Unusable calls it again with valid inline data of the same type, to
// distinguish an unsupported type from invalid data or an unsupported URL.
func Unusable(media llm.Media, takes func(llm.Media) bool) llm.Unusable {
	media = Inline(media)
	if takes(media) {
		return ""
	}
	// The text "{}" is valid for the types that are checked for content: text and JSON.
	inline := media
	inline.Data, inline.URL = base64.StdEncoding.EncodeToString([]byte("{}")), ""
	switch {
	case !takes(inline):
		return llm.UnusableType
	case media.Data != "":
		return llm.UnusableData
	case !IsWebURL(media):
		return llm.UnusableAddress
	}
	return llm.UnusableURL
}

// mediaType returns the media type in lower case without parameters, or "" if it is invalid.
func mediaType(media llm.Media) string {
	kind, _, _ := mime.ParseMediaType(media.MIME)
	return kind
}
