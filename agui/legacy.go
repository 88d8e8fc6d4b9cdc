package agui

import (
	"encoding/json"
	"slices"
	"strings"
)

// partBinary is the media part of peers from before 1.0:
// {type:"binary", mimeType, id?, url?, data?, filename?}.
const partBinary PartType = "binary"

// upgradeParts replaces binary parts by their successors. Some peers send both
// forms of one attachment; the old twin is then dropped.
func upgradeParts(parts []ContentPart) []ContentPart {
	if !slices.ContainsFunc(parts, isBinary) {
		return parts
	}
	present := modernAttachments(parts)
	upgraded := make([]ContentPart, 0, len(parts))
	for _, p := range parts {
		modern, ok := modernPart(p)
		if ok && present[modern.attachment()] {
			continue
		}
		upgraded = append(upgraded, modern)
	}
	return upgraded
}

// attachment is what makes two media parts the same.
type attachment struct {
	kind     PartType
	source   SourceType
	value    string
	mime     string
	filename string
}

func (p ContentPart) attachment() attachment {
	return attachment{p.Type, p.Source.Type, p.Source.Value, p.Source.MimeType, p.filename()}
}

// modernAttachments has each part with and without its file name: a twin
// without one loses nothing when it goes.
func modernAttachments(parts []ContentPart) map[attachment]bool {
	present := make(map[attachment]bool)
	for _, p := range parts {
		if p.Source == nil {
			continue
		}
		a := p.attachment()
		present[a] = true
		a.filename = ""
		present[a] = true
	}
	return present
}

func isBinary(p ContentPart) bool { return p.Type == partBinary }

// modernPart returns the successor of a binary part and true, or p and false
// when it is none or names no bytes.
func modernPart(p ContentPart) (ContentPart, bool) {
	if !isBinary(p) {
		return p, false
	}
	mime := p.unknownText("mimeType")
	source := &PartSource{Type: SourceData, Value: p.unknownText("data"), MimeType: mime}
	if source.Value == "" {
		source.Type, source.Value = SourceURL, p.unknownText("url")
	}
	if source.Value == "" || mime == "" {
		return p, false
	}
	modern := ContentPart{Type: partTypeFor(mime), Source: source}
	if name := p.unknownText("filename"); name != "" {
		modern.Metadata = append(appendString([]byte(`{"filename":`), name), '}')
	}
	return modern, true
}

func (p ContentPart) unknownText(name string) string {
	var s string
	_ = json.Unmarshal(p.Unknown[name], &s) // a value of another type is as good as none
	return s
}

func partTypeFor(mime string) PartType {
	kind, _, found := strings.Cut(mime, "/")
	if found && slices.Contains([]string{"image", "audio", "video"}, kind) {
		return PartType(kind)
	}
	return PartDocument
}

func (p ContentPart) filename() string {
	var metadata struct{ Filename string }
	_ = json.Unmarshal(p.Metadata, &metadata) // metadata may be anything
	return metadata.Filename
}
