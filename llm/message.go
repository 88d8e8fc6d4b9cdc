package llm

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a message.
type Role string

// The roles of a conversation.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation.
type Message struct {
	Role Role

	// Name is the speaker's name, if there is one. Providers without such a
	// field leave it out.
	Name string

	// Parts is the content, in order.
	Parts []Part

	// ToolCalls are the calls of an assistant message, by their index.
	ToolCalls []ToolCall

	// ToolCallID is the id of the call that a tool message answers.
	ToolCallID string

	// IsError says that a tool message tells of a failure. Providers without
	// such a field leave it out: the text says it too.
	IsError bool

	// Reasoning is the thinking of an assistant message, in order.
	Reasoning []Reasoning
}

// Text joins the text parts of the message.
func (m Message) Text() string {
	var b strings.Builder
	for _, part := range m.Parts {
		if text, ok := part.(Text); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// Reasoning is one block of a model's thinking.
type Reasoning struct {
	// Text is the visible thinking or its summary. It may be empty.
	Text string

	// Provider is who made the block. A provider skips the blocks of others.
	Provider string

	// Data is what the provider wants back unchanged with the next request
	// (a signature, an encrypted block). It means nothing to anybody else; nil
	// says that the block need not be sent back.
	Data json.RawMessage
}

// Part is a piece of content: [Text] or [Media].
//
// A provider skips a part that it cannot use; a part never fails a request.
type Part interface{ part() }

// Text is plain text.
type Text struct{ Text string }

// Media is an image, a sound, a film or a document, inline or by URL.
type Media struct {
	Kind MediaKind

	// MIME is the media type, such as image/png.
	MIME string

	// Data is the content in standard base64. It goes before URL.
	Data string

	// URL is where the content is, for the provider to fetch.
	URL string

	// Name is the name of the file, if it has one.
	Name string
}

func (Text) part()  {}
func (Media) part() {}

// MediaKind says what a [Media] part shows.
type MediaKind string

// The kinds of media.
const (
	MediaImage    MediaKind = "image"
	MediaAudio    MediaKind = "audio"
	MediaVideo    MediaKind = "video"
	MediaDocument MediaKind = "document"
)

// ToolCall is a call the model asked for.
type ToolCall struct {
	// ID is the provider's own id, to be sent back to that provider as it is.
	// It is unique within a completion and no identity beyond the conversation.
	ID string

	// Name is the name of the tool, as the model wrote it.
	Name string

	// Arguments is the text of the arguments as the model wrote it: a JSON
	// object if the model behaved, any text if it did not.
	Arguments string
}
