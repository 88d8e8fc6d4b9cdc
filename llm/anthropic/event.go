package anthropic

import "encoding/json"

// event is one event of the stream, of any type. Text stays as it was written:
// a character may be cut in two.
type event struct {
	Type         string `json:"type"`
	Index        int64  `json:"index"`
	Message      opened `json:"message"`
	ContentBlock block  `json:"content_block"`
	Delta        delta  `json:"delta"`
	Usage        counts `json:"usage"`
}

// opened is the message of message_start.
type opened struct {
	Model json.RawMessage `json:"model"`
	Usage counts          `json:"usage"`
}

// block is the beginning of a block. Only what its type has is set.
type block struct {
	Type      string          `json:"type"`
	Text      json.RawMessage `json:"text"`
	Thinking  json.RawMessage `json:"thinking"`
	Signature json.RawMessage `json:"signature"`
	Data      json.RawMessage `json:"data"`
	ID        json.RawMessage `json:"id"`
	Name      json.RawMessage `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// delta is what follows in a block, or at the end of the message.
type delta struct {
	Type        string          `json:"type"`
	Text        json.RawMessage `json:"text"`
	Thinking    json.RawMessage `json:"thinking"`
	Signature   json.RawMessage `json:"signature"`
	PartialJSON json.RawMessage `json:"partial_json"`
	StopReason  string          `json:"stop_reason"`
}

// counts are tokens so far.
type counts struct {
	Input      *int64 `json:"input_tokens"` // neither read from nor written to the cache
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Output     *int64 `json:"output_tokens"`
	Details    struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}
