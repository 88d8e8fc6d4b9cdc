package anthropic

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
)

// sealed returns thinking in sealed form.
func sealed(text, data string) llm.Reasoning {
	return llm.Reasoning{Text: text, Provider: "anthropic", Data: json.RawMessage(data)}
}

// bodyOf returns the request for the given messages, without cache marks.
func bodyOf(t *testing.T, model string, messages ...llm.Message) map[string]json.RawMessage {
	t.Helper()
	params, err := New(Config{}).params(&llm.Request{Model: model, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), `"cache_control":{"type":"ephemeral"},`, "")), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

func TestMessages(t *testing.T) {
	t.Parallel()
	const image = "iVBORw0KGgo="
	calls := []llm.ToolCall{{ID: "a", Name: "f", Arguments: ` {"x":12345678901234567890}`}, {ID: "b", Name: "g"}}
	picture := llm.Media{Kind: llm.MediaImage, MIME: "image/jpg", Data: image}
	for name, test := range map[string]struct {
		messages []llm.Message
		want     string
	}{
		"turns": {
			[]llm.Message{
				textMessage(llm.RoleUser, "Hi"), textMessage(llm.RoleUser, "there"),
				{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Ok"}}, ToolCalls: calls},
				{Role: llm.RoleTool, ToolCallID: "a", Parts: []llm.Part{llm.Text{Text: "1"}, picture}},
				{Role: llm.RoleTool, ToolCallID: "b", IsError: true, Parts: []llm.Part{llm.Text{Text: "no"}}},
				textMessage(llm.RoleUser, "Go on"),
				textMessage(llm.RoleAssistant, "Well"), textMessage(llm.RoleAssistant, "Yes"),
			},
			`[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"there"}]},
			  {"role":"assistant","content":[{"type":"text","text":"Ok"},
			    {"type":"tool_use","id":"a","name":"f","input":{"x":12345678901234567890}},
			    {"type":"tool_use","id":"b","name":"g","input":{}}]},
			  {"role":"user","content":[
			    {"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"1"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"iVBORw0KGgo="}}]},
			    {"type":"tool_result","tool_use_id":"b","is_error":true,"content":[{"type":"text","text":"no"}]},
			    {"type":"text","text":"Go on"}]},
			  {"role":"assistant","content":[{"type":"text","text":"Well"},{"type":"text","text":"Yes"}]}]`,
		},
		"an empty result": {
			[]llm.Message{textMessage(llm.RoleUser, "Hi"), {Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "\n"}}, ToolCalls: calls[1:]}, {Role: llm.RoleTool, ToolCallID: "b", Parts: []llm.Part{llm.Text{Text: " \n"}}}},
			`[{"role":"user","content":[{"type":"text","text":"Hi"}]},
			  {"role":"assistant","content":[{"type":"tool_use","id":"b","name":"g","input":{}}]},
			  {"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]}]`,
		},
		"arguments that are no object": {
			[]llm.Message{textMessage(llm.RoleUser, "Hi"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f", Arguments: `{"x`}, {ID: "b", Name: "f", Arguments: `[1]`}, {ID: "c", Name: "f", Arguments: " "}}}},
			`[{"role":"user","content":[{"type":"text","text":"Hi"}]},
			  {"role":"assistant","content":[
			    {"type":"tool_use","id":"a","name":"f","input":{"arguments":"{\"x"}},
			    {"type":"tool_use","id":"b","name":"f","input":{"arguments":"[1]"}},
			    {"type":"tool_use","id":"c","name":"f","input":{}}]}]`,
		},
		"an answer at the beginning": {
			[]llm.Message{textMessage(llm.RoleAssistant, "Welcome"), textMessage(llm.RoleUser, "Hi")},
			`[{"role":"user","content":[{"type":"text","text":"(The conversation begins with you.)"}]},
			  {"role":"assistant","content":[{"type":"text","text":"Welcome"}]},
			  {"role":"user","content":[{"type":"text","text":"Hi"}]}]`,
		},
		"messages without content are left out": {
			[]llm.Message{userMessage(llm.Media{Kind: llm.MediaVideo}), userMessage(llm.Text{Text: " "}), textMessage(llm.RoleUser, "Hi"), {Role: llm.RoleAssistant, Reasoning: []llm.Reasoning{sealed("Hm", `{"signature":"s"}`)}}, textMessage("narrator", "x"), textMessage(llm.RoleUser, "there")},
			`[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"text","text":"there"}]}]`,
		},
		"media that the API has a place for": {
			[]llm.Message{userMessage(
				llm.Media{Kind: llm.MediaImage, MIME: "image/PNG", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "https://x.example/i.png"},
				llm.Media{Kind: llm.MediaImage, URL: "data:image/webp;base64," + image},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", Data: image, Name: "a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/pdf", URL: "https://x.example/a.pdf"},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/csv; charset=utf-8", Data: "YSxi", Name: "a.csv"},
			)},
			`[{"role":"user","content":[
			  {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},
			  {"type":"image","source":{"type":"url","url":"https://x.example/i.png"}},
			  {"type":"image","source":{"type":"base64","media_type":"image/webp","data":"iVBORw0KGgo="}},
			  {"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"iVBORw0KGgo="}},
			  {"type":"document","source":{"type":"url","url":"https://x.example/a.pdf"}},
			  {"type":"document","title":"a.csv","source":{"type":"text","media_type":"text/plain","data":"a,b"}}]}]`,
		},
		"unusable media is left out": {
			[]llm.Message{userMessage(
				llm.Media{Kind: llm.MediaVideo, MIME: "video/mp4", Data: image},
				llm.Media{Kind: llm.MediaAudio, MIME: "audio/mpeg", Data: image},
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "not base64"},
				llm.Media{Kind: llm.MediaImage, MIME: "image/svg+xml", Data: image},
				llm.Media{Kind: llm.MediaImage, URL: "file:///etc/passwd"},
				llm.Media{Kind: llm.MediaImage, URL: "data:image/png,raw"},
				llm.Media{Kind: llm.MediaImage},
				llm.Media{Kind: llm.MediaDocument, MIME: "application/zip", Data: image},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", URL: "https://x.example/a.txt"},
				llm.Media{Kind: llm.MediaDocument, MIME: "text/plain", Data: "/w=="},
				llm.Text{Text: "See"},
			)},
			`[{"role":"user","content":[{"type":"text","text":"See"}]}]`,
		},
		"thinking keeps its place, in every turn": {
			[]llm.Message{
				textMessage(llm.RoleUser, "1"),
				{
					Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Look: there"}}, ToolCalls: calls[1:],
					Reasoning: []llm.Reasoning{
						sealed("Hm", `{"signature":"s1"}`), sealed("", `{"redacted":"x"}`), sealed("", `{"signature":"s2","text":6}`),
						sealed("last", `{"signature":"s3","text":11,"calls":1}`),
						{Text: "not ours", Provider: "openai", Data: json.RawMessage(`{"signature":"s"}`)}, {Text: "open"}, sealed("empty", `{}`), sealed("both", `{"signature":"s","redacted":"x"}`),
					},
				},
				{Role: llm.RoleTool, ToolCallID: "b"},
				textMessage(llm.RoleUser, "2"),
			},
			`[{"role":"user","content":[{"type":"text","text":"1"}]},
			  {"role":"assistant","content":[
			    {"type":"thinking","thinking":"Hm","signature":"s1"},
			    {"type":"redacted_thinking","data":"x"},
			    {"type":"text","text":"Look: "},
			    {"type":"thinking","thinking":"","signature":"s2"},
			    {"type":"text","text":"there"},
			    {"type":"tool_use","id":"b","name":"g","input":{}},
			    {"type":"thinking","thinking":"last","signature":"s3"}]},
			  {"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"2"}]}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equalJSON(t, test.want, bodyOf(t, "m", test.messages...)["messages"])
		})
	}
}

// TestBoundThinking: newer models refuse thinking whose conversation has changed, unless the
// request asks them to ignore it.
func TestBoundThinking(t *testing.T) {
	t.Parallel()
	thought := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "Ok"}}, Reasoning: []llm.Reasoning{sealed("Hm", `{"signature":"s"}`)}}
	for _, test := range []struct {
		model  string
		effort string
		answer llm.Message
		want   string
		beta   string
	}{
		{"claude-opus-5-5", "", thought, `{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`, bindingBeta},
		{"claude-opus-5-5", "high", thought, `{"type":"adaptive","display":"summarized","block_binding":{"prefix_mismatch_behavior":"drop_block"}}`, bindingBeta},
		{"claude-opus-5-5", "", textMessage(llm.RoleAssistant, "Ok"), `null`, ""},
		{"claude-opus-5", "", thought, `null`, ""},
	} {
		header, body := sent(t, Config{}, &llm.Request{Model: test.model, ReasoningEffort: test.effort, Messages: []llm.Message{textMessage(llm.RoleUser, "1"), test.answer, textMessage(llm.RoleUser, "2")}})
		if body["thinking"] == nil {
			body["thinking"] = json.RawMessage(`null`)
		}
		equalJSON(t, test.want, body["thinking"])
		if got := header.Get("Anthropic-Beta"); got != test.beta {
			t.Errorf("%s: beta is %q, want %q", test.model, got, test.beta)
		}
	}
}

// TestCache: a request has at most four cache marks, each at the end of a prefix that the next
// request repeats.
func TestCache(t *testing.T) {
	t.Parallel()
	messages := []llm.Message{textMessage(llm.RoleSystem, "Be brief."), textMessage(llm.RoleUser, "1")}
	for i := range 3 {
		id := fmt.Sprint("call", i)
		messages = append(messages,
			llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: id, Name: "f"}, {ID: id + "b", Name: "f"}}},
			llm.Message{Role: llm.RoleTool, ToolCallID: id}, llm.Message{Role: llm.RoleTool, ToolCallID: id + "b"})
	}
	_, body := sent(t, Config{}, &llm.Request{Model: "m", Messages: messages, Tools: []llm.Tool{{Name: "f"}, {Name: "g"}}})
	type marked struct {
		Name      string          `json:"name"`
		Text      string          `json:"text"`
		ToolUseID string          `json:"tool_use_id"`
		Cache     json.RawMessage `json:"cache_control"`
	}
	var request struct {
		Tools, System []marked
		Messages      []struct{ Content []marked }
	}
	data, _ := json.Marshal(body)
	if err := json.Unmarshal(data, &request); err != nil {
		t.Fatal(err)
	}
	blocks := slices.Concat(request.Tools, request.System)
	for _, message := range request.Messages {
		blocks = append(blocks, message.Content...)
	}
	var got []string
	for _, block := range blocks {
		if block.Cache != nil {
			got = append(got, block.Name+block.Text+block.ToolUseID)
		}
	}
	if diff := cmp.Diff([]string{"g", "Be brief.", "call1b", "call2b"}, got); diff != "" {
		t.Errorf("marked (-want +got):\n%s", diff)
	}
}
