package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"testing"
)

// model is a running model server.
type model struct{ *nodeServer }

// sharedModel serves all tests: which answer is meant is told by what the user says.
var sharedModel *model

func launchModel() (*model, error) {
	server, err := launchNode("serve.mjs", "model")
	return &model{server}, err
}

// environ tells a process to use the model server.
func (m *model) environ() []string {
	return []string{
		"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + m.url + "/v1",
		"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL=" + m.url,
		"GEMINI_API_KEY=none", "GEMINI_BASE_URL=" + m.url,
	}
}

// fixture is one answer of the model server. The members are aimock's.
type fixture struct {
	Match    match    `json:"match"`
	Response response `json:"response"`
	// Latency is the time between two chunks in milliseconds, ChunkSize their length in characters.
	Latency   int `json:"latency,omitempty"`
	ChunkSize int `json:"chunkSize,omitempty"`
	// TruncateAfterChunks breaks the connection off.
	TruncateAfterChunks int `json:"truncateAfterChunks,omitempty"`
}

type match struct {
	// UserMessage stands in the last message of the user.
	UserMessage string `json:"userMessage"`
	// SequenceIndex is the how-manieth such request this answers, from 0; nil = any.
	SequenceIndex *int `json:"sequenceIndex,omitempty"`
	// HasToolResult tells whether tools have answered since the user spoke; nil = either.
	HasToolResult *bool `json:"hasToolResult,omitempty"`
	// ResponseFormat is the type of Chat Completions' response_format.
	ResponseFormat string `json:"responseFormat,omitempty"`
}

type response struct {
	Content   string      `json:"content,omitempty"`
	Reasoning string      `json:"reasoning,omitempty"`
	ToolCalls []modelCall `json:"toolCalls,omitempty"`
	Usage     *tokens     `json:"usage,omitempty"`
	Error     *modelError `json:"error,omitempty"`
	Status    int         `json:"status,omitempty"`
}

// tokens are what an answer says it used.
type tokens struct {
	Input  int `json:"prompt_tokens"`
	Output int `json:"completion_tokens"`
	Total  int `json:"total_tokens"`
}

type modelCall struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type modelError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
}

// answer adds answers. Of several that match, the first that was added counts.
func (m *model) answer(t *testing.T, fixtures ...fixture) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"fixtures": fixtures})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(m.url+"/__aimock/fixtures", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if reason, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("the model server refuses a fixture: %s", reason)
	}
}

// answerWith adds one text as the answer to a prompt.
func (m *model) answerWith(t *testing.T, prompt, text string) {
	t.Helper()
	m.answer(t, fixture{Match: match{UserMessage: prompt}, Response: response{Content: text}})
}

// attempts adds one answer for each time that a prompt is sent.
func (m *model) attempts(t *testing.T, prompt string, fixtures ...fixture) {
	t.Helper()
	for i := range fixtures {
		fixtures[i].Match = match{UserMessage: prompt, SequenceIndex: &i}
	}
	m.answer(t, fixtures...)
}

// call is a request that the model server had. Those of other APIs it tells as OpenAI's.
type call struct {
	Body struct {
		Model    string        `json:"model"`
		Messages []chatMessage `json:"messages"`
	} `json:"body"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// chatMessage is a message as OpenAI's API has it.
type chatMessage struct {
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

// text returns the content, whether it is a string or parts.
func (m chatMessage) text() string {
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

// calls returns the requests in which somebody says what contains a text, in order.
func (m *model) calls(t *testing.T, containing string) []call {
	t.Helper()
	return m.callsOf(t, "completions", containing)
}

// callsOf is calls for the API that has a word in its path.
func (m *model) callsOf(t *testing.T, api, containing string) (calls []call) {
	t.Helper()
	query := url.Values{"api": {api}, "containing": {containing}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+"/calls?"+query.Encode(), nil)
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
