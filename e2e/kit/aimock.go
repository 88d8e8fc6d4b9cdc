package kit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Model is a running model server (aimock). Its responses are fixtures.
type Model struct{ *nodeServer }

// SharedModel is the model server of all tests of an area. It selects the response by the text of
// the last user message.
var SharedModel *Model

// launchModel starts the model server.
func launchModel() (*Model, error) {
	server, err := launchNode("serve.mjs", "model")
	return &Model{server}, err
}

// Environ returns the environment variables that make a process use the model server.
func (m *Model) Environ() []string {
	return []string{
		"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + m.URL + "/v1",
		"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + m.URL,
		"GEMINI_API_KEY=none", "GEMINI_BASE_URL=" + m.URL,
	}
}

// Fixture is one response of the model server, with aimock's member names.
type Fixture struct {
	Match    Match    `json:"match"`
	Response Response `json:"response"`
	// Latency is the time between two chunks in milliseconds. ChunkSize is the length of a chunk in
	// characters.
	Latency   int `json:"latency,omitempty"`
	ChunkSize int `json:"chunkSize,omitempty"`
	// TruncateAfterChunks is the number of chunks after which the server closes the connection; 0 =
	// never.
	TruncateAfterChunks int `json:"truncateAfterChunks,omitempty"`
}

// Match selects the requests that get a fixture as response.
type Match struct {
	// UserMessage is a text that the last user message contains.
	UserMessage string `json:"userMessage"`
	// SequenceIndex is the number of the matching request, counted from 0; nil = any.
	SequenceIndex *int `json:"sequenceIndex,omitempty"`
	// HasToolResult requires tool results after the last user message (true) or none (false); nil =
	// either.
	HasToolResult *bool `json:"hasToolResult,omitempty"`
	// ResponseFormat is the type of response_format in a Chat Completions request.
	ResponseFormat string `json:"responseFormat,omitempty"`
}

// Response is the content of a model response, or the error in its place.
type Response struct {
	Content   string      `json:"content,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"`
	ToolCalls []ModelCall `json:"toolCalls,omitempty"`
	Usage     *Tokens     `json:"usage,omitempty"`
	Error     *ModelError `json:"error,omitempty"`
	Status    int         `json:"status,omitempty"`
}

// Tokens is the usage that a model response reports.
type Tokens struct {
	Input  int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
	Total  int `json:"total_tokens"`
}

// ModelCall is a tool call that a model makes.
type ModelCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ModelError is the body of a failed model call.
type ModelError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

// Answer adds fixtures. If several match a request, the server uses the one that was added first.
func (m *Model) Answer(t *testing.T, fixtures ...Fixture) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(m.URL+"/__aimock/fixtures", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if reason, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("fixture of the model server: got a refusal, want it accepted: %s", reason)
	}
}

// AnswerWith adds a text as the response to a prompt.
func (m *Model) AnswerWith(t *testing.T, prompt, text string) {
	t.Helper()
	m.Answer(t, Fixture{Match: Match{UserMessage: prompt}, Response: Response{Content: text}})
}

// AnswerInOrder adds one fixture for each request with the prompt: the first fixture is the
// response to the first request, and so on.
func (m *Model) AnswerInOrder(t *testing.T, prompt string, fixtures ...Fixture) {
	t.Helper()
	for i := range fixtures {
		fixtures[i].Match = Match{UserMessage: prompt, SequenceIndex: &i}
	}
	m.Answer(t, fixtures...)
}

// Call is a request that the model server received. aimock shows requests of other APIs in OpenAI's
// form.
type Call struct {
	Body struct {
		Model    string        `json:"model"`
		Messages []ChatMessage `json:"messages"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// ChatMessage is a message of OpenAI's Chat Completions API.
type ChatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Text returns the content, which is a string or a list of parts.
func (m ChatMessage) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// Calls returns the Chat Completions requests with a message that contains the text, in the order
// of their arrival.
func (m *Model) Calls(t *testing.T, containing string) []Call {
	t.Helper()
	return m.CallsOf(t, "completions", containing)
}

// CallsOf is like Calls, for the API whose path contains the given word.
func (m *Model) CallsOf(t *testing.T, api, containing string) (calls []Call) {
	t.Helper()
	query := url.Values{"api": {api}, "containing": {containing}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.URL+"/calls?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&calls); err != nil {
		t.Fatal(err)
	}
	return calls
}
