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
	// MaxParts is how many parts a result may have besides its text.
	MaxParts = 32
	// MaxMedia bounds in bytes what the media of a result take together, in base64.
	MaxMedia = 16 << 20
)

// boundedParts returns the parts that a result may have, and what to tell the model about the others.
func boundedParts(parts []llm.Part, maxText int) (kept []llm.Part, note string) {
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
		if len(kept) == MaxParts {
			omitted++
			continue
		}
		kept = append(kept, part)
	}
	if omitted > 0 {
		note = fmt.Sprintf("[omitted: %d parts of the result that are too many, too large or incomplete]", omitted)
	}
	return kept, note
}

// usable reports whether there is something to show, and it is said what it is. What a provider would
// refuse must not get into the conversation: each later call would be refused for it.
func usable(m llm.Media) bool {
	switch m.Kind {
	case llm.MediaImage, llm.MediaAudio, llm.MediaVideo, llm.MediaDocument:
		return m.Data != "" && m.MIME != "" && isBase64(m.Data) || m.Data == "" && m.URL != "" && utf8.ValidString(m.URL)
	}
	return false
}

func isBase64(s string) bool {
	_, err := io.Copy(io.Discard, base64.NewDecoder(base64.StdEncoding.Strict(), strings.NewReader(s)))
	return err == nil && !strings.ContainsAny(s, "\r\n") // which the decoder passes over
}
