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

// IsBase64 reports whether data is what [llm.Media.Data] promises; providers
// refuse the whole request otherwise.
func IsBase64(data string) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	return err == nil
}

// IsPDF reports whether a document is one.
func IsPDF(media llm.Media) bool { return mediaType(media) == "application/pdf" }

// IsText reports whether a document is there as text, which every provider takes.
func IsText(media llm.Media) bool {
	kind := mediaType(media)
	return media.Data != "" && (strings.HasPrefix(kind, "text/") || kind == "application/json")
}

// PlainText returns the content of a document for which [IsText] holds, and whether
// that is text indeed.
func PlainText(media llm.Media) (string, bool) {
	text, err := base64.StdEncoding.DecodeString(media.Data)
	return string(text), err == nil && len(text) > 0 && utf8.Valid(text)
}

// Inline turns a data: URL into data. Other media it returns as it is.
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

// IsWebURL reports whether a provider may be able to fetch what the media is.
func IsWebURL(media llm.Media) bool {
	address, err := url.Parse(media.URL)
	return err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https")
}

// Unusable tells why takes, which tells whether a provider is sent some media, refuses these; "" =
// it takes them.
func Unusable(media llm.Media, takes func(llm.Media) bool) llm.Unusable {
	media = Inline(media)
	if takes(media) {
		return ""
	}
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

func mediaType(media llm.Media) string {
	kind, _, _ := mime.ParseMediaType(media.MIME) // "" for what is none
	return kind
}
