package files

import (
	"mime"
	"slices"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// Media types for content that has no other.
const (
	typeBytes = "application/octet-stream"
	typeText  = "text/plain"
)

// sniffBytes is how much of a file tells its type.
const sniffBytes = 3072

// textual are media types of texts whose names do not begin with text/.
var textual = []string{"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/sql"}

// recognized are the beginnings of media types whose content can be recognized. Content that is not
// recognized has none of them, whatever the caller says.
var recognized = []string{"image/", "audio/", "video/", "text/", "application/pdf", "application/zip", "application/gzip"}

// forms are the media types that clients declare by default, and that say nothing about a file.
var forms = []string{"application/x-www-form-urlencoded", "multipart/form-data"}

// TypeOf returns the media type of a file: the declared one if the first bytes of the content allow
// it, else the one that they show.
func TypeOf(declared string, head []byte) string {
	declared, _, err := mime.ParseMediaType(declared)
	if err != nil || slices.Contains(forms, declared) {
		declared = ""
	}
	found := mimetype.Detect(head)
	for m := found; m != nil && declared != ""; m = m.Parent() {
		if m.Is(declared) {
			return declared
		}
	}
	switch {
	case found.Is(typeText) && isText(declared), found.Is(typeBytes) && isOpaque(declared):
		return declared
	}
	detected, _, err := mime.ParseMediaType(found.String())
	if err != nil {
		return typeBytes
	}
	return detected
}

// isText reports whether a declared type may be that of a text without a mark. HTML is recognized, so
// a text that is not HTML is not served as HTML.
func isText(declared string) bool {
	return strings.HasPrefix(declared, "text/") && declared != "text/html" || slices.Contains(textual, declared)
}

// isOpaque reports whether a declared type may be that of content that is not recognized.
func isOpaque(declared string) bool {
	return declared != "" && !slices.Contains(textual, declared) &&
		!slices.ContainsFunc(recognized, func(prefix string) bool { return strings.HasPrefix(declared, prefix) })
}

// inline are the media types that browsers show without running scripts. SVG and HTML are not among
// them.
var inline = []string{
	"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif",
	"audio/mpeg", "audio/ogg", "audio/wav", "audio/x-wav", "audio/mp4", "audio/webm", "audio/flac", "application/pdf",
}

// IsInline reports whether a browser may show content of a media type in the page. Other files are
// downloads.
func IsInline(mediaType string) bool { return slices.Contains(inline, mediaType) }
