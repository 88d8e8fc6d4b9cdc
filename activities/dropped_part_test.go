package activities_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

// inlineOnlyModel is a model that reads inline documents only, and no media in tool results.
type inlineOnlyModel struct{ llm.Model }

func (inlineOnlyModel) Unusable(_ string, role llm.Role, media llm.Media) llm.Unusable {
	switch {
	case role == llm.RoleTool:
		return llm.UnusableInResult
	case media.URL != "":
		return llm.UnusableURL
	}
	return ""
}

// TestDroppedPartsAreShown: parts that the model cannot read cause no failure.
// Clients are shown an event for each part once, with the model call that drops it.
func TestDroppedPartsAreShown(t *testing.T) {
	t.Parallel()
	paint := tools.Func("paint", "paints", func(context.Context, struct{}) (tools.Result, error) {
		return tools.Result{Content: "here", Parts: []llm.Part{llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: "iVBORw0KGgo="}}}, nil
	})
	fixture := setup(t, func(n int, _ *llm.Request) ([]llm.Chunk, error) {
		if n == 1 {
			return callAnswer([3]string{"x", "paint", `{}`})
		}
		return textAnswer("done")
	}, paint)
	fixture.acts.Models["test"] = inlineOnlyModel{fixture.acts.Models["test"]}
	var legacy agui.Message // of a client before AG-UI 1.0, with the handle of a file
	if err := json.Unmarshal([]byte(`{"id":"u3","role":"user","content":[{"type":"binary","mimeType":"image/png","id":"file-2"}]}`), &legacy); err != nil {
		t.Fatal(err)
	}
	document := func(source agui.PartSource) agui.ContentPart {
		source.MimeType = "application/pdf"
		return agui.ContentPart{Type: agui.PartDocument, Source: &source}
	}
	fixture.more = []agui.Message{{ID: "u2", Role: agui.RoleUser, Content: agui.PartsContent([]agui.ContentPart{
		agui.TextPart("read these"),
		document(agui.PartSource{Type: agui.SourceURL, Value: "https://x.example/a.pdf"}),
		document(agui.PartSource{Type: agui.SourceData, Value: "JVBERi0xLjQ="}),
		document(agui.PartSource{Type: agui.SourceFile, Value: "file-1"}),
	})}, legacy}
	events, _ := fixture.run("hello")
	var dropped []string
	var result string
	for _, event := range events {
		switch event := event.(type) {
		case *agui.ToolCallResult:
			result = event.MessageID
		case *agui.Custom:
			if event.Name == "perdure.contentDropped" {
				dropped = append(dropped, string(event.Value))
			}
		}
	}
	id, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"messageId":"u2","part":1,"type":"document","mimeType":"application/pdf","reason":"url_not_supported","provider":"test"}`,
		`{"messageId":"u2","part":3,"type":"document","mimeType":"application/pdf","reason":"source_not_supported","provider":"test"}`,
		`{"messageId":"u3","part":0,"type":"image","mimeType":"image/png","reason":"source_not_supported","provider":"test"}`,
		`{"messageId":` + string(id) + `,"part":1,"type":"image","mimeType":"image/png","reason":"tool_result_not_supported","provider":"test"}`,
	}
	if !slices.Equal(dropped, want) {
		t.Errorf("dropped parts: got\n%q, want\n%q", dropped, want)
	}
}
