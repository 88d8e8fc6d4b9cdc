package anthropic

import "encoding/json"

// event is one event of the stream; Type determines which fields are set. Text fields stay
// undecoded JSON literals, because encoding/json would destroy a character that is split between
// two events ([wire.Unquote]).
type event struct {
	Type         string `json:"type"`
	Index        int64  `json:"index"` // of the content block
	Message      opened `json:"message"`
	ContentBlock block  `json:"content_block"`
	Delta        delta  `json:"delta"`
	Usage        counts `json:"usage"`
}

// opened is the message object of message_start.
type opened struct {
	Model json.RawMessage `json:"model"`
	Usage counts          `json:"usage"`
}

// block is the content block of content_block_start. Type determines which fields are set.
type block struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	Signature json.RawMessage `json:"signature"`
	Data      json.RawMessage `json:"data"` // of redacted_thinking
	ID        json.RawMessage `json:"id"`
	Name      json.RawMessage `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// delta is the delta of content_block_delta or message_delta.
type delta struct {
	Type        string          `json:"type"`
	Text        json.RawMessage `json:"text"`
	Thinking    json.RawMessage `json:"thinking"`
	Signature   json.RawMessage `json:"signature"`
	PartialJSON json.RawMessage `json:"partial_json"` // of input_json_delta
	StopReason  string          `json:"stop_reason"`  // of message_delta
}

// counts is the usage object: the tokens of the message so far.
type counts struct {
	Input      *int64 `json:"input_tokens"` // without cached tokens
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}
