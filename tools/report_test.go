package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/tools"
)

func TestReportWithoutListener(t *testing.T) {
	t.Parallel()
	check := func(r tools.Reporter) {
		for _, err := range []error{
			r.Activity("a", "b", nil), r.PatchActivity("a"), r.PatchState(tools.Set("/a", 1)), r.Custom("a", nil), r.Raw("", nil),
		} {
			if err != nil {
				t.Errorf("a report fails: %v", err)
			}
		}
		if got := string(r.State()); got != "{}" {
			t.Errorf("state = %s, want {}", got)
		}
	}
	check(tools.Report(t.Context()))
	tool := tools.Func("f", "", func(ctx context.Context, _ struct{}) (string, error) {
		check(tools.Report(ctx))
		return "", nil
	})
	if result, err := tool.Call(t.Context(), tools.Call{ID: "c"}); err != nil || result.IsError {
		t.Errorf("call = %+v, %v, want no error", result, err)
	}
}

// listener is a reporter that accepts only CUSTOM.
type listener struct {
	tools.Reporter
	heard []string
}

func (l *listener) Custom(name string, _ any) error {
	l.heard = append(l.heard, name)
	return nil
}

func TestReportBelongsToCall(t *testing.T) {
	t.Parallel()
	tool := tools.Func("f", "", func(ctx context.Context, _ struct{}) (string, error) {
		return "", tools.Report(ctx).Custom("hello", nil)
	})
	var l listener
	if _, err := tool.Call(t.Context(), tools.Call{ID: "c", Reporter: &l}); err != nil || len(l.heard) != 1 {
		t.Errorf("reports = %v, %v, want one", l.heard, err)
	}
}

func TestOpsAreJSONPatch(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal([]tools.Op{
		tools.Set("/a", nil), tools.Append("/list", 1), tools.Remove("/b"), {Op: "move", From: "/a", Path: "/b"}, {Op: "test", Path: "", Value: "x"},
	})
	want := `[{"op":"add","path":"/a","value":null},{"op":"add","path":"/list/-","value":1},{"op":"remove","path":"/b"},` +
		`{"op":"move","from":"/a","path":"/b"},{"op":"test","path":"","value":"x"}]`
	if err != nil || string(got) != want {
		t.Errorf("operations are %s (%v), want %s", got, err, want)
	}
}

func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	image := llm.Media{Kind: llm.MediaImage, URL: "https://example.com/i.png"}
	many := make([]llm.Part, tools.MaxParts+2)
	for i := range many {
		many[i] = image
	}
	for name, test := range map[string]struct {
		parts, want []llm.Part
	}{
		"none": {nil, nil},
		"complete parts": {
			[]llm.Part{image, llm.Text{Text: "a\xff"}, llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: "aGk="}},
			[]llm.Part{image, llm.Text{Text: "a\uFFFD"}, llm.Media{Kind: llm.MediaAudio, MIME: "audio/wav", Data: "aGk="}},
		},
		"incomplete parts": {
			[]llm.Part{llm.Media{Kind: llm.MediaAudio, Data: "aGk="}, llm.Media{Kind: llm.MediaAudio}, llm.Media{Kind: "smell", URL: "https://example.com"}, nil, image},
			[]llm.Part{image, llm.Text{Text: "[omitted: 4 parts of the result that are too many, too large or incomplete]"}},
		},
		"too large": {
			[]llm.Part{llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: strings.Repeat("A", tools.MaxMedia)}, image},
			[]llm.Part{
				llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: strings.Repeat("A", tools.MaxMedia)},
				llm.Text{Text: "[omitted: 1 parts of the result that are too many, too large or incomplete]"},
			},
		},
		"too many": {
			many, append(many[:tools.MaxParts:tools.MaxParts], llm.Text{Text: "[omitted: 2 parts of the result that are too many, too large or incomplete]"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := tools.Func("f", "", func(context.Context, struct{}) (tools.Result, error) {
				return tools.Result{Content: "text", Parts: test.parts}, nil
			})
			result, err := tool.Call(t.Context(), tools.Call{ID: "c"})
			if diff := cmp.Diff(test.want, result.Parts); err != nil || result.Content != "text" || diff != "" {
				t.Errorf("result %q, error %v, parts (-want +got):\n%.400s", result.Content, err, diff)
			}
		})
	}
}
