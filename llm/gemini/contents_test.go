package gemini

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/llm"
)

// sealed returns thinking in sealed form.
func sealed(text, data string) llm.Reasoning {
	return llm.Reasoning{Text: text, Provider: "gemini", Data: json.RawMessage(data)}
}

// contentsOf returns messages in the provider's format.
func contentsOf(t *testing.T, model string, messages ...llm.Message) json.RawMessage {
	t.Helper()
	body, err := New(Config{}).body(&llm.Request{Model: model, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(body.Contents)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// smallImage is the beginning of a PNG file, in base64.
const smallImage = "iVBORw0KGgo="

// The calls, the image and the conversation of contentsCases.
var (
	contentsCalls    = []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "functions.g"}}
	contentsImage    = llm.Media{Kind: llm.MediaImage, MIME: "image/jpg", Data: smallImage, Name: "a.jpg"}
	contentsMessages = []llm.Message{
		textMessage(llm.RoleUser, "Hi"), textMessage(llm.RoleUser, "there"),
		textMessage(llm.RoleAssistant, "Well"),
		{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Ok"}}, ToolCalls: contentsCalls},
		{Role: llm.RoleTool, ToolCallID: "a", Parts: []llm.Part{llm.Text{Text: "1"}, contentsImage, llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"}}},
		{Role: llm.RoleTool, ToolCallID: "b", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}},
		textMessage(llm.RoleUser, "Go on"),
	}
)

// contentsCases are conversations, with the contents that are sent to the API.
var contentsCases = map[string]struct {
	model    string
	messages []llm.Message
	want     string
}{
	"turns": {
		"gemini-3-pro", contentsMessages,
		`[{"role":"user","parts":[{"text":"Hi"}]},
			  {"role":"user","parts":[{"text":"there"}]},
			  {"role":"model","parts":[{"text":"Well"},{"text":"Ok"},
			    {"functionCall":{"id":"a","name":"f","args":{"x":1}}},
			    {"functionCall":{"id":"b","name":"functions_g_1f5jnb9","args":{}}}]},
			  {"role":"user","parts":[
			    {"functionResponse":{"id":"a","name":"f","response":{"output":"1"},"parts":[{"inlineData":{"mimeType":"image/jpeg","data":"iVBORw0KGgo=","displayName":"a.jpg"}}]}},
			    {"functionResponse":{"id":"b","name":"functions_g_1f5jnb9","response":{"error":"no"}}}]},
			  {"role":"user","parts":[{"text":"Go on"}]}]`,
	},
	"results in the order of their calls": {
		"gemini-2.5-pro",
		[]llm.Message{
			textMessage(llm.RoleUser, "1"),
			{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "\n"}}, ToolCalls: []llm.ToolCall{{ID: "c", Name: "f"}, {ID: "b", Name: "f"}, {ID: "a", Name: "f"}}},
			{Role: llm.RoleTool, ToolCallID: "a"}, {Role: llm.RoleTool, ToolCallID: "c"}, {Role: llm.RoleTool, ToolCallID: "b"},
		},
		`[{"role":"user","parts":[{"text":"1"}]},
			  {"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{}}},{"functionCall":{"id":"b","name":"f","args":{}}},{"functionCall":{"id":"a","name":"f","args":{}}}]},
			  {"role":"user","parts":[
			    {"functionResponse":{"id":"c","name":"f","response":{"output":""}}},
			    {"functionResponse":{"id":"b","name":"f","response":{"output":""}}},
			    {"functionResponse":{"id":"a","name":"f","response":{"output":""}}}]}]`,
	},
	"an older model takes the text of results alone": {
		"gemini-2.5-pro", contentsMessages[3:5],
		`[{"role":"user","parts":[{"text":"(The conversation begins with you.)"}]},
			  {"role":"model","parts":[{"text":"Ok"},
			    {"functionCall":{"id":"a","name":"f","args":{"x":1}}},
			    {"functionCall":{"id":"b","name":"functions_g_1f5jnb9","args":{}}}]},
			  {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"1"}}}]}]`,
	},
	"messages without content are left out": {
		"m",
		[]llm.Message{{Role: llm.RoleAssistant}, userMessage(llm.Media{Kind: llm.MediaVideo}), userMessage(llm.Text{Text: " "}), textMessage(llm.RoleUser, "Hi"), {Role: llm.RoleAssistant, Reasoning: []llm.Reasoning{sealed("Hm", `{"signature":"s","on":"text"}`)}}, textMessage("narrator", "x")},
		`[{"role":"user","parts":[{"text":"Hi"}]}]`,
	},
	"media that the API has a place for": {
		"m",
		[]llm.Message{userMessage(
			contentsImage,
			llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i"},
			llm.Media{Kind: llm.MediaImage, URL: "data:image/webp;base64," + smallImage},
			llm.Media{Kind: llm.MediaAudio, MIME: "audio/ogg; codecs=opus", Data: smallImage},
			llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", URL: "https://x.example/v.mp4"},
			llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: smallImage, Name: "a.pdf"},
			llm.Media{Kind: llm.MediaDocument, MIME: "text/csv; charset=utf-8", Data: "YSxi", Name: "a.csv"},
		)},
		`[{"role":"user","parts":[
			  {"inlineData":{"mimeType":"image/jpeg","data":"iVBORw0KGgo="}},
			  {"fileData":{"fileUri":"https://x.example/i"}},
			  {"inlineData":{"mimeType":"image/webp","data":"iVBORw0KGgo="}},
			  {"inlineData":{"mimeType":"audio/ogg","data":"iVBORw0KGgo="}},
			  {"fileData":{"mimeType":"video/mp4","fileUri":"https://x.example/v.mp4"}},
			  {"inlineData":{"mimeType":"application/pdf","data":"iVBORw0KGgo="}},
			  {"text":"a.csv:\n\na,b"}]}]`,
	},
	"unusable media is left out": {
		"m",
		[]llm.Message{userMessage(
			llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "not base64"},
			llm.Media{Kind: llm.MediaImage, MIME: "image/svg+xml", Data: smallImage},
			llm.Media{Kind: llm.MediaImage, MIME: "image/svg+xml", URL: "https://x.example/i.svg"},
			llm.Media{Kind: llm.MediaImage, MIME: "video/mp4", Data: smallImage},
			llm.Media{Kind: llm.MediaImage, URL: "file:///etc/passwd"},
			llm.Media{Kind: llm.MediaImage},
			llm.Media{Kind: llm.MediaDocument, MIME: "application/zip", Data: smallImage},
			llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="},
			llm.Media{Kind: "hologram", MIME: "image/png", Data: smallImage},
			llm.Text{Text: "See"},
		)},
		`[{"role":"user","parts":[{"text":"See"}]}]`,
	},
	"signatures keep their place": {
		"gemini-3-pro",
		[]llm.Message{
			textMessage(llm.RoleUser, "1"),
			{
				Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Grüße. Done"}}, ToolCalls: contentsCalls,
				Reasoning: []llm.Reasoning{
					sealed("Hm", `{"signature":"s0","on":"thought"}`),
					sealed("", `{"signature":"s1","on":"text","length":8}`),
					sealed("", `{"signature":"s2","on":"text","text":8}`),
					sealed("", `{"signature":"s3","on":"call","text":13}`),
					{Text: "not ours", Provider: "openai", Data: json.RawMessage(`{"signature":"s","on":"call"}`)}, {Text: "open"}, sealed("empty", `{}`),
				},
			},
			{Role: llm.RoleTool, ToolCallID: "a"}, {Role: llm.RoleTool, ToolCallID: "b"},
		},
		`[{"role":"user","parts":[{"text":"1"}]},
			  {"role":"model","parts":[
			    {"text":"Hm","thought":true,"thoughtSignature":"s0"},
			    {"text":"Grüße.","thoughtSignature":"s1"},
			    {"text":"","thoughtSignature":"s2"},
			    {"text":" Done"},
			    {"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"s3"},
			    {"functionCall":{"id":"b","name":"functions_g_1f5jnb9","args":{}}}]},
			  {"role":"user","parts":[
			    {"functionResponse":{"id":"a","name":"f","response":{"output":""}}},
			    {"functionResponse":{"id":"b","name":"functions_g_1f5jnb9","response":{"output":""}}}]}]`,
	},
	"calls of another provider's model, in this turn": {
		"gemini-3-pro",
		[]llm.Message{
			textMessage(llm.RoleUser, "1"), {Role: llm.RoleAssistant, ToolCalls: contentsCalls[:1]}, {Role: llm.RoleTool, ToolCallID: "a"},
			textMessage(llm.RoleUser, "2"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "c", Name: "f"}, {ID: "d", Name: "f"}}},
		},
		`[{"role":"user","parts":[{"text":"1"}]},
			  {"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{"x":1}}}]},
			  {"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":""}}}]},
			  {"role":"user","parts":[{"text":"2"}]},
			  {"role":"model","parts":[
			    {"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},
			    {"functionCall":{"id":"d","name":"f","args":{}}}]}]`,
	},
}

func TestContents(t *testing.T) {
	t.Parallel()
	for name, test := range contentsCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equalJSON(t, test.want, contentsOf(t, test.model, test.messages...))
		})
	}
}
