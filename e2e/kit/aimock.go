package kit

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// Model is a running model server.
type Model struct{ *nodeServer }

// SharedModel serves all tests: which answer is meant is told by what the user says.
var SharedModel *Model

func launchModel() (*Model, error) {
	server, err := launchNode("serve.mjs", "model")
	return &Model{server}, err
}

// Environ tells a process to use the model server.
func (m *Model) Environ() []string {
	return []string{
		"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + m.Url + "/v1",
		"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + m.Url,
		"GEMINI_API_KEY=none", "GEMINI_BASE_URL=" + m.Url,
	}
}

// Fixture is one answer of the model server. The members are aimock's.
type Fixture struct {
	Match    Match    `json:"match"`
	Response Response `json:"response"`
	// Latency is the time between two chunks in milliseconds, ChunkSize their length in characters.
	Latency   int `json:"latency,omitempty"`
	ChunkSize int `json:"chunkSize,omitempty"`
	// TruncateAfterChunks breaks the connection off.
	TruncateAfterChunks int `json:"truncateAfterChunks,omitempty"`
}

type Match struct {
	// UserMessage stands in the last message of the user.
	UserMessage string `json:"userMessage"`
	// SequenceIndex is the how-manieth such request this answers, from 0; nil = any.
	SequenceIndex *int `json:"sequenceIndex,omitempty"`
	// HasToolResult tells whether tools have answered since the user spoke; nil = either.
	HasToolResult *bool `json:"hasToolResult,omitempty"`
	// ResponseFormat is the type of Chat Completions' response_format.
	ResponseFormat string `json:"responseFormat,omitempty"`
}

type Response struct {
	Content   string      `json:"content,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"`
	ToolCalls []ModelCall `json:"toolCalls,omitempty"`
	Usage     *Tokens     `json:"usage,omitempty"`
	Error     *ModelError `json:"error,omitempty"`
	Status    int         `json:"status,omitempty"`
}

// Tokens are what an answer says it used.
type Tokens struct {
	Input  int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
	Total  int `json:"total_tokens"`
}

type ModelCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type ModelError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

// Answer adds answers. Of several that match, the first that was added counts.
func (m *Model) Answer(t *testing.T, fixtures ...Fixture) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(m.Url+"/__aimock/fixtures", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if reason, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("the model server refuses a fixture: %s", reason)
	}
}

// AnswerWith adds one text as the answer to a prompt.
func (m *Model) AnswerWith(t *testing.T, prompt, text string) {
	t.Helper()
	m.Answer(t, Fixture{Match: Match{UserMessage: prompt}, Response: Response{Content: text}})
}

// Attempts adds one answer for each time that a prompt is sent.
func (m *Model) Attempts(t *testing.T, prompt string, fixtures ...Fixture) {
	t.Helper()
	for i := range fixtures {
		fixtures[i].Match = Match{UserMessage: prompt, SequenceIndex: &i}
	}
	m.Answer(t, fixtures...)
}

// Call is a request that the model server had. Those of other APIs it tells as OpenAI's.
type Call struct {
	Body struct {
		Model    string        `json:"model"`
		Messages []ChatMessage `json:"messages"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// ChatMessage is a message as OpenAI's API has it.
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

// Text returns the content, whether it is a string or parts.
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

// Calls returns the requests in which somebody says what contains a text, in order.
func (m *Model) Calls(t *testing.T, containing string) []Call {
	t.Helper()
	return m.CallsOf(t, "completions", containing)
}

// CallsOf is calls for the API that has a word in its path.
func (m *Model) CallsOf(t *testing.T, api, containing string) (calls []Call) {
	t.Helper()
	query := url.Values{"api": {api}, "containing": {containing}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.Url+"/calls?"+query.Encode(), nil)
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
