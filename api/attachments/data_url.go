package attachments

import (
	"encoding/base64"
	"errors"
	"mime"
	"net/url"
	"strings"

	"github.com/perdure/perdure/agui"
)

// dataScheme begins a URL that has its data (RFC 2397): data:[<media type>][;base64],<data>
const dataScheme = "data:"

// errDataURL tells that a data: URL is malformed.
var errDataURL = errors.New("must be data:, a media type, ;base64, a comma, and base64, such as data:image/png;base64,iVBORw0KGgo=")

// isDataURL reports whether the source of a part is a URL that has its data.
func isDataURL(p agui.ContentPart) bool {
	return p.Source != nil && p.Source.Type == agui.SourceURL && len(p.Source.Value) >= len(dataScheme) &&
		strings.EqualFold(p.Source.Value[:len(dataScheme)], dataScheme)
}

// inline returns the source with the data of a data: URL. The media type of the URL has precedence.
// Errors: errDataURL.
func inline(source agui.PartSource) (*agui.PartSource, error) {
	header, text, found := strings.Cut(source.Value[len(dataScheme):], ",")
	if !found {
		return nil, errDataURL
	}
	if strings.Contains(text, "%") {
		var err error
		if text, err = url.PathUnescape(text); err != nil {
			return nil, errDataURL
		}
	}
	if before, ok := cutSuffixFold(header, ";base64"); ok {
		if _, err := decode(text); err != nil {
			return nil, errDataURL
		}
		header = before
	} else {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if header == "" || strings.HasPrefix(header, ";") { // only parameters
		header = "text/plain" + header
		if source.MimeType != "" {
			header = source.MimeType
		}
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return nil, errDataURL
	}
	source.Type, source.Value, source.MimeType = agui.SourceData, text, mediaType
	return &source, nil
}

// cutSuffixFold is strings.CutSuffix without regard to case.
func cutSuffixFold(s, suffix string) (before string, found bool) {
	at := len(s) - len(suffix)
	if at < 0 || !strings.EqualFold(s[at:], suffix) {
		return s, false
	}
	return s[:at], true
}
