package agui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// partBinary is the media part of peers from before 1.0: {type:"binary", mimeType, id?, url?,
// data?, filename?}.
const partBinary PartType = "binary"

// upgradeParts converts binary parts to media parts. Some peers send an attachment in both forms;
// it then drops the binary one.
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

// attachment identifies the data of a media part. Two parts with equal attachments are duplicates.
type attachment struct {
	kind     PartType
	source   SourceType
	value    string
	mime     string
	filename string
}

// attachment returns the identity of a media part, whose Source must not be nil.
func (p ContentPart) attachment() attachment {
	return attachment{p.Type, p.Source.Type, p.Source.Value, p.Source.MimeType, p.filename()}
}

// modernAttachments returns the attachments of the media parts, each with and without its file
// name. A binary part without a file name is then a duplicate of one with a file name.
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

// modernPart converts a binary part. An ID alone is the handle of a file. It returns p and false for
// another part, and for a binary part without a media type or without all of data, URL and ID.
func modernPart(p ContentPart) (ContentPart, bool) {
	if !isBinary(p) {
		return p, false
	}
	mime := p.unknownText("mimeType")
	source := &PartSource{Type: SourceData, Value: p.unknownText("data"), MimeType: mime}
	if source.Value == "" {
		source.Type, source.Value = SourceURL, p.unknownText("url")
	}
	if source.Value == "" {
		source.Type, source.Value = SourceFile, cmp.Or(p.ID, p.unknownText("id"))
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

// unknownText returns a string among the unknown members, or "".
func (p ContentPart) unknownText(name string) string {
	var s string
	_ = json.Unmarshal(p.Unknown[name], &s) // a value that is no string counts as absent
	return s
}

// partTypeFor returns the part type for a media type.
func partTypeFor(mime string) PartType {
	kind, _, found := strings.Cut(mime, "/")
	if found && slices.Contains([]string{"image", "audio", "video"}, kind) {
		return PartType(kind)
	}
	return PartDocument
}

// filename returns the member filename of the metadata, or "".
func (p ContentPart) filename() string {
	var metadata struct{ Filename string }
	_ = json.Unmarshal(p.Metadata, &metadata) // metadata may be anything
	return metadata.Filename
}
