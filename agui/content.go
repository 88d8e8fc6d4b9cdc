package agui

import (
	"encoding/json"
	"reflect"
	"strings"
)

// contentKind is the form of a Content. Kinds are bits, so that a member can allow several.
type contentKind uint8

const (
	contentText contentKind = 1 << iota
	contentParts
	contentObject
)

// Content is the content of a message: absent, text, parts or (for activity messages) an object.
// The zero value is absent, which is different from empty text. A Content is immutable.
type Content struct {
	kind   contentKind
	text   string
	parts  []ContentPart
	object json.RawMessage
}

// TextContent returns text content.
func TextContent(s string) Content { return Content{kind: contentText, text: s} }

// PartsContent returns content of parts. It keeps the slice, which the caller must not change.
func PartsContent(parts []ContentPart) Content {
	if parts == nil {
		parts = []ContentPart{}
	}
	return Content{kind: contentParts, parts: parts}
}

// ObjectContent returns the content of an activity message, a JSON object.
func ObjectContent(object json.RawMessage) Content {
	return Content{kind: contentObject, object: object}
}

// IsAbsent reports whether there is no content at all.
func (c Content) IsAbsent() bool { return c.kind == 0 }

// IsText reports whether the content is a string.
func (c Content) IsText() bool { return c.kind == contentText }

// Text returns the string, or the concatenation of the text parts. It returns "" for absent and
// object content.
func (c Content) Text() string {
	if c.kind != contentParts {
		return c.text
	}
	var b strings.Builder
	for _, p := range c.parts {
		if p.Type == PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Parts returns the content as parts. A string becomes one text part. Absent and object content
// have no parts.
func (c Content) Parts() []ContentPart {
	if c.kind == contentText {
		return []ContentPart{{Type: PartText, Text: c.text}}
	}
	return c.parts
}

// Object returns the JSON object of an activity message, or nil.
func (c Content) Object() json.RawMessage { return c.object }

// PartType is the discriminator of a ContentPart.
type PartType string

// The kinds of content parts.
const (
	PartText     PartType = "text"
	PartImage    PartType = "image"
	PartAudio    PartType = "audio"
	PartVideo    PartType = "video"
	PartDocument PartType = "document"
)

var partTypes = []string{"text", "image", "audio", "video", "document"}

// ContentPart is one part of a message's content. A part of an unknown type has only Type and
// Unknown. Consumers skip parts that they cannot use.
type ContentPart struct {
	Type PartType
	ID   string
	// Text is for text parts.
	Text string
	// Source is for all other parts.
	Source *PartSource
	// Metadata is any value except null; nil means absent.
	Metadata json.RawMessage
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

// TextPart returns a text part.
func TextPart(s string) ContentPart { return ContentPart{Type: PartText, Text: s} }

// MarshalJSON implements json.Marshaler.
func (p ContentPart) MarshalJSON() ([]byte, error) { return marshal(&p) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *ContentPart) UnmarshalJSON(raw []byte) error { return unmarshal(raw, p) }

// SourceType is the discriminator of a PartSource.
type SourceType string

// The kinds of part sources.
const (
	SourceData SourceType = "data"
	SourceURL  SourceType = "url"
	SourceFile SourceType = "file"
)

var sourceTypes = []string{"data", "url", "file"}

// PartSource is the source of a part's data.
type PartSource struct {
	Type SourceType
	// Value is base64 (data), a URL (url), or the handle of a file that is stored at a provider
	// (file). Only that provider can interpret a handle.
	Value string
	// MimeType is required for data.
	MimeType string
	// Provider is for file sources: the vendor's ID in lower case.
	Provider string
	// Unknown contains members that the protocol does not define.
	Unknown map[string]json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (s PartSource) MarshalJSON() ([]byte, error) { return marshal(&s) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *PartSource) UnmarshalJSON(raw []byte) error { return unmarshal(raw, s) }

// Equal reports whether two contents are equal. Package go-cmp uses it, since the fields are
// unexported.
func (c Content) Equal(o Content) bool { return reflect.DeepEqual(c, o) }

// String describes allowed kinds in error messages.
func (k contentKind) String() string {
	switch k {
	case contentText:
		return "a string"
	case contentObject:
		return "an object"
	default:
		return "a string or an array of parts"
	}
}
