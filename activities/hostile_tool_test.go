package activities_test

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/tools"
)

// TestImpossibleUsageIsEstimated: impossible token counts neither end the run nor keep it from
// ending. They are replaced by an estimate.
func TestImpossibleUsageIsEstimated(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]int64{"negative": -5, "more than a double holds": math.MaxInt64, "just too many": 1<<40 + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, func(n2 int, _ *llm.Request) ([]llm.Chunk, error) {
				usage := llm.Usage{Input: &n, Output: &n, Total: &n, Reasoning: &n, CachedInput: &n, CacheWrite: &n}
				if n2 < 3 {
					return []llm.Chunk{llm.ToolCallStart{ID: "x", Name: "noop"}, llm.Finish{Reason: llm.FinishToolCalls, Provider: "p", Model: "m", Usage: usage}}, nil
				}
				return []llm.Chunk{llm.TextDelta{Text: "done"}, llm.Finish{Reason: llm.FinishStop, Provider: "p", Model: "m", Usage: usage}}, nil
			}, tools.Func("noop", "does nothing", func(context.Context, struct{}) (string, error) { return "", nil }))
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			for _, u := range events[len(events)-1].(*agui.RunFinished).Usage {
				if *u.InputTokens < 0 || *u.InputTokens > 1000 || *u.OutputTokens < 0 || *u.OutputTokens > 1000 {
					t.Errorf("tokens: got %d and %d, want an estimate", *u.InputTokens, *u.OutputTokens)
				}
			}
			fixture.wantThreadEqualsClient(events)
		})
	}
}

// TestHostileArguments: any arguments of a model are stored and shown unchanged, and a state that
// follows an argument stays valid.
func TestHostileArguments(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	for name, arguments := range map[string]string{
		"deep":               `{"document":` + deep + `}`,
		"as deep as it goes": `{"document":` + strings.Repeat("[", agui.MaxDepth-2) + strings.Repeat("]", agui.MaxDepth-2) + `}`,
		"deep, without end":  `{"document":` + strings.Repeat(`{"a":`, 50_000),
		"no JSON":            "\x00\x01<script>",
		"not an object":      `[1,2,3]`,
		"a name twice":       `{"document":1,"document":[2]}`,
		"large":              `{"document":"` + strings.Repeat("x", 1<<20) + `"}`,
		"surrogates":         `{"document":"\ud800","\udfff":1}`,
		"a huge number":      `{"document":1e999999999}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, callOnce("write", arguments), tools.Func("write", "writes", func(context.Context, map[string]any) (string, error) { return "ok", nil }))
			fixture.agent.State = agents.State{Visible: true, Predict: []agents.Prediction{{Tool: "write", Argument: "document", Key: "document"}}}
			events, result := fixture.run("go")
			wantEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			wantEqual(t, "number of model calls", fixture.calls.Load(), 2)
			screen := clientState(t, events)
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "state of the client", string(screen.State()), string(r.State))
			wantEqual(t, "arguments", r.Entries[1].Message.ToolCalls[0].Arguments, arguments)
			wantEqual(t, "state is too deep", agui.TooDeep(r.State), false)
		})
	}
}

// hostileTools misbehave in their results.
func hostileTools() []tools.Tool {
	give := func(name string, result func() (tools.Result, error)) tools.Tool {
		return tools.Func(name, "hostile", func(context.Context, struct{}) (tools.Result, error) { return result() })
	}
	content := func(s string) func() (tools.Result, error) {
		return func() (tools.Result, error) { return tools.Result{Content: s}, nil }
	}
	media := func(data string) func() (tools.Result, error) {
		return func() (tools.Result, error) {
			return tools.Result{Parts: []llm.Part{llm.Media{Kind: llm.MediaImage, MIME: "image/png", Data: data, Name: "\xff"}}}, nil
		}
	}
	return []tools.Tool{
		give("text5MB", content(strings.Repeat("0123456789abcdef", 5<<16))),
		give("noUTF8", content(strings.Repeat("\xff\xfe\xed\xa0\x80", 1000))),
		give("control", content("\x00\x1b[2J\u2028\u202e")),
		give("deepJSON", content(strings.Repeat("[", 1<<20))),
		give("error1MB", func() (tools.Result, error) { return tools.Result{}, errors.New(strings.Repeat("no! ", 1<<18)) }),
		give("panics", func() (tools.Result, error) { panic(strings.Repeat("x", 1<<20)) }),
		give("image5MB", media(base64.StdEncoding.EncodeToString(make([]byte, 5<<20)))),
		give("noBase64", media(strings.Repeat("\x00\xff!", 1000))),
		give("imageTooLarge", media(strings.Repeat("AAAA", tools.MaxMedia/4+1))),
		give("manyParts", func() (tools.Result, error) {
			return tools.Result{Parts: make([]llm.Part, 100_000)}, nil
		}),
		tools.Func("noJSON", "hostile", func(context.Context, struct{}) (any, error) { return map[string]any{"f": func() {}}, nil }),
		tools.Func("deepReports", "hostile", func(ctx context.Context, _ struct{}) (string, error) {
			var v any
			for range 5000 {
				v = []any{v}
			}
			r := tools.Report(ctx)
			for _, err := range []error{
				r.PatchState(tools.Set("/a", v)), r.Activity("a", "b", map[string]any{"c": v}), r.Custom("c", v), r.Raw("d", v),
			} {
				if refused := (*tools.ReportError)(nil); !errors.As(err, &refused) {
					return "", errors.New("the report was accepted")
				}
			}
			return "all were refused", nil
		}),
		tools.Func("goexit", "hostile", func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "", nil }, tools.Timeout(1)),
	}
}

// TestHostileTools: whatever a tool returns, the model gets a result of bounded size, and the run
// continues.
func TestHostileTools(t *testing.T) {
	t.Parallel()
	for _, tool := range hostileTools() {
		t.Run(tool.Spec().Name, func(t *testing.T) {
			t.Parallel()
			fixture := setup(t, callOnce(tool.Spec().Name, "{}"), tool)
			events, result := fixture.run("go")
			mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
			mustEqual(t, "number of model calls", fixture.calls.Load(), 2)
			clientState(t, events)
			r, err := fixture.acts.Snapshots.Latest(t.Context(), run.Thread, 0)
			if err != nil {
				t.Fatal(err)
			}
			answer := r.Entries[2].Message
			size := len(answer.Content.Text())
			for _, p := range answer.Content.Parts() {
				size += len(p.Text)
				if p.Source != nil {
					size += len(p.Source.Value)
				}
			}
			if size > tools.DefaultMaxResult+tools.MaxMedia {
				t.Errorf("result = %v, want at most %v", size, tools.DefaultMaxResult+tools.MaxMedia)
			}
			wantEqual(t, "result is valid UTF-8", utf8.ValidString(answer.Content.Text()), true)
			wantEqual(t, "role of the result", answer.Role, agui.RoleTool)
			wantParts := map[string]agui.PartType{"image5MB": agui.PartImage, "noBase64": agui.PartText, "imageTooLarge": agui.PartText, "manyParts": agui.PartText}
			if want, has := wantParts[tool.Spec().Name]; has && answer.Content.Parts()[0].Type != want {
				t.Errorf("first part: got %s, want %s", answer.Content.Parts()[0].Type, want)
			}
			if tool.Spec().Name == "deepReports" && answer.Content.Text() != "all were refused" {
				t.Errorf("result = %q, want %q", answer.Content.Text(), "all were refused")
			}
			next, err := fixture.acts.Snapshots.Latest(t.Context(), stream.Thread{Tenant: "default", ID: "t2"}, 0)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "another thread: number of entries", len(next.Entries), 0)
		})
	}
}
