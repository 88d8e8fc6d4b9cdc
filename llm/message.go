package llm

import (
	"encoding/json"
	"strings"
)

// Role is the author of a message.
type Role string

// The roles of a conversation. [RoleTool] is the author of tool results.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation. Which fields have a meaning depends on Role.
type Message struct {
	// Role is the author of the message.
	Role Role

	// Name is the participant's name, or "". Providers whose API has no such field omit it.
	Name string

	// Parts is the content, in order.
	Parts []Part

	// ToolCalls are the calls of an assistant message, in the order of their index.
	ToolCalls []ToolCall

	// ToolCallID is the ID of the call that a tool message answers.
	ToolCallID string

	// IsError marks a tool message whose tool call failed. Providers whose API has no such field
	// omit it; the text of the message describes the failure as well.
	IsError bool

	// Reasoning is the reasoning of an assistant message, in order.
	Reasoning []Reasoning
}

// Text returns the concatenation of the text parts of the message.
func (m Message) Text() string {
	var b strings.Builder
	for _, part := range m.Parts {
		if text, ok := part.(Text); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// Reasoning is one block of a model's reasoning. Providers with signed or encrypted reasoning
// require it in the next request, unchanged.
type Reasoning struct {
	// Text is the visible reasoning or its summary. It may be empty.
	Text string

	// Provider is the name of the provider that produced the block, as in [Finish.Provider]. A
	// provider omits the blocks of other providers from its requests.
	Provider string

	// Data is what the provider needs to send the block back: a signature, an encrypted block, its
	// position in the answer. Only the provider that wrote it can interpret it. nil = the block
	// does not have to be sent back.
	Data json.RawMessage
}

// Part is a piece of content: [Text] or [Media].
//
// A provider omits a part that its API does not accept; a part never makes a request fail.
// [MediaReader] reports which parts a provider omits, and why.
type Part interface{ part() }

// Text is a part of plain text.
type Text struct{ Text string }

// Media is an image, an audio file, a video or a document, inline or by URL.
type Media struct {
	// Kind selects the content type of the API that carries the media.
	Kind MediaKind

	// MIME is the media type, such as image/png.
	MIME string

	// Data is the content in standard base64. If it is set, URL is ignored.
	Data string

	// URL is the address from which the provider fetches the content. A data: URL with base64
	// counts as Data.
	URL string

	// Name is the file name, or "".
	Name string
}

func (Text) part()  {}
func (Media) part() {}

// MediaKind is the kind of content of a [Media] part.
type MediaKind string

// The kinds of media.
const (
	MediaImage    MediaKind = "image"
	MediaAudio    MediaKind = "audio"
	MediaVideo    MediaKind = "video"
	MediaDocument MediaKind = "document"
)

// ToolCall is a tool call that the model requested.
type ToolCall struct {
	// ID is the provider's ID of the call. The next request returns it unchanged, to match the
	// result to the call. It is unique within a completion, not across conversations.
	ID string

	// Name is the name of the tool as the model wrote it. The tool may not exist.
	Name string

	// Arguments is the text of the arguments as the model wrote it. It should be a JSON object, but
	// a model can write any text.
	Arguments string
}
