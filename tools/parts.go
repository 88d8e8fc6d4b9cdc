package tools

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/llm"
)

const (
	// MaxParts is the maximum number of parts that a result may have in addition to its text.
	MaxParts = 32
	// MaxMedia is the maximum size of all media of a result, in bytes of base64 and URLs.
	MaxMedia = 16 << 20
)

// boundedParts returns the parts that are within the limits, and a note for the model about omitted
// ones ("" = none). maxText limits the text of all parts together, in bytes. Each text keeps at
// least minMaxResult, so that its truncation note fits.
func boundedParts(parts []llm.Part, maxText int) (accepted []llm.Part, note string) {
	media, omitted := 0, 0
	for _, part := range parts {
		switch p := part.(type) {
		case llm.Text:
			p.Text = bounded(p.Text, maxText)
			maxText = max(maxText-len(p.Text), minMaxResult)
			part = p
		case llm.Media:
			if !usable(p) || media+len(p.Data)+len(p.URL) > MaxMedia {
				omitted++
				continue
			}
			media += len(p.Data) + len(p.URL)
			p.MIME, p.Name = strings.ToValidUTF8(p.MIME, ""), strings.ToValidUTF8(p.Name, "")
			part = p
		default:
			omitted++
			continue
		}
		if len(accepted) == MaxParts {
			omitted++
			continue
		}
		accepted = append(accepted, part)
	}
	if omitted > 0 {
		note = fmt.Sprintf("[omitted: %d parts of the result that are too many, too large or incomplete]", omitted)
	}
	return accepted, note
}

// usable reports whether a media part has a type and a source. A provider would reject media
// without them. The part would stay in the conversation, so every later model call would fail.
func usable(m llm.Media) bool {
	switch m.Kind {
	case llm.MediaImage, llm.MediaAudio, llm.MediaVideo, llm.MediaDocument:
		return m.Data != "" && m.MIME != "" && isBase64(m.Data) || m.Data == "" && m.URL != "" && utf8.ValidString(m.URL)
	}
	return false
}

// isBase64 reports whether s is standard base64 without line breaks.
func isBase64(s string) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(s)))
	return err == nil && !strings.ContainsAny(s, "\r\n") // the decoder ignores line breaks
}
