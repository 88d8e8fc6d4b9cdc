package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/perdure/perdure/tools"
)

type refund struct {
	OrderID string   `json:"orderId" jsonschema:"the order's number"`
	Amount  float64  `json:"amount"`
	Copies  int8     `json:"copies,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// echo returns its arguments, so that a result shows what the function received.
func echo(_ context.Context, in refund) (refund, error) { return in, nil }

func TestFuncSchema(t *testing.T) {
	t.Parallel()
	tool := tools.Func("issue_refund", "Refunds an order.", echo, tools.Timeout(10*time.Second), tools.Idempotent())
	got := tool.Spec()
	want := tools.Spec{
		Name:        "issue_refund",
		Description: "Refunds an order.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"orderId":{"type":"string","description":"the order's number"},` +
			`"amount":{"type":"number"},` +
			`"copies":{"type":"integer","minimum":-128,"maximum":127},` +
			`"reasons":{"type":["null","array"],"items":{"type":"string"}}},` +
			`"required":["orderId","amount"],"additionalProperties":false}`),
		Timeout:    10 * time.Second,
		MaxResult:  tools.DefaultMaxResult,
		Idempotent: true,
		Attempts:   tools.DefaultAttempts,
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("JSON", func(raw json.RawMessage) (v any) {
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Error(err)
		}
		return v
	})); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestFuncArguments(t *testing.T) {
	t.Parallel()
	called := false
	tool := tools.Func("issue_refund", "", func(ctx context.Context, in refund) (refund, error) {
		called = true
		return echo(ctx, in)
	})
	tests := []struct{ name, arguments, want string }{
		{"missing", `{"orderId":"7"}`, "/amount: is required"},
		{"empty counts as an object", "", "/amount: is required; /orderId: is required"},
		{"wrong type", `{"orderId":7,"amount":1}`, "/orderId: expected string, got number"},
		{"unknown", `{"orderId":"7","amount":1,"a/b~":0}`, "/a~1b~0: unknown argument; the arguments are amount, copies, orderId, reasons"},
		{"another case is another argument", `{"orderId":"7","amount":1,"AMOUNT":2}`, "/AMOUNT: unknown argument"},
		{"inside an array", `{"orderId":"7","amount":1,"reasons":["a",2]}`, "/reasons/1: expected string, got number"},
		{"several", `{"orderId":7,"amount":"x"}`, "/amount: expected number, got string; /orderId: expected string, got number"},
		{"twice", `{"orderId":"7","amount":1,"amount":1000}`, "/amount: given twice"},
		{"out of range", `{"orderId":"7","amount":1e400}`, "/amount: the number is out of range"},
		{"fits the schema, not the type", `{"orderId":"7","amount":1,"copies":1.0}`, "/copies: number 1.0 does not fit int8"},
		{"truncated", `{"orderId":"7"`, "not valid JSON at byte 14: unexpected end of JSON input"},
		{"trailing", `{} {}`, "not valid JSON at byte 4"},
		{"prose", `I would like a refund`, "not valid JSON at byte 1"},
		{"array", `[1]`, "expected a JSON object, got array"},
		{"null", `null`, "expected a JSON object, got null"},
		{"bytes", "{\"orderId\":\"\xff\",\"amount\":1}", "not valid UTF-8"},
		{"deep", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200), "nested deeper than 100 levels"},
		{"huge", `{"orderId":"` + strings.Repeat("x", 1<<20) + `","amount":1}`, "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(tt.arguments)})
			if err != nil {
				t.Fatal(err)
			}
			if !result.IsError || !strings.HasPrefix(result.Content, "invalid arguments: "+tt.want) {
				t.Errorf("got %q (failed: %t), want a failure with %q", result.Content, result.IsError, tt.want)
			}
			if wrong := (*tools.ArgumentsError)(nil); !errors.As(result.Cause, &wrong) {
				t.Errorf("cause is %T, want *ArgumentsError", result.Cause)
			}
		})
	}
	if called {
		t.Error("function is called with arguments that its schema refuses, want no call")
	}
}

func TestFuncResult(t *testing.T) {
	t.Parallel()
	type none struct{}
	tests := []struct {
		name string
		tool tools.Tool
		want tools.Result
	}{
		{"text is passed on unchanged", fixed(`a "b" <c>`), tools.Result{Content: `a "b" <c>`}},
		{"JSON", fixed(map[string]any{"a": "<b>", "n": 1}), tools.Result{Content: `{"a":"<b>","n":1}`}},
		{"nothing", fixed(none{}), tools.Result{Content: `{}`}},
		{"raw JSON", fixed(json.RawMessage(`[1, 2]`)), tools.Result{Content: `[1,2]`}},
		{"not UTF-8", fixed("a\xffb"), tools.Result{Content: "a\uFFFDb"}},
		{"not JSON", fixed(math.NaN()), tools.Result{Content: "fixed has run, but its result is not valid", IsError: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.tool.Call(t.Context(), tools.Call{})
			if err != nil {
				t.Fatal(err)
			}
			if got.Content != tt.want.Content || got.IsError != tt.want.IsError {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// fixed returns a tool with a fixed result.
func fixed[Out any](out Out, opts ...tools.Option) tools.Tool {
	return tools.Func("fixed", "", func(context.Context, struct{}) (Out, error) { return out, nil }, opts...)
}

func TestLongResultIsCut(t *testing.T) {
	t.Parallel()
	// With two-byte runes, neither an even nor an odd limit may cut a rune in half.
	for _, limit := range []int{1024, 1025} {
		tool := fixed(strings.Repeat("é", 5000), tools.MaxResult(limit))
		result, err := tool.Call(t.Context(), tools.Call{})
		if err != nil {
			t.Fatal(err)
		}
		if result.IsError {
			t.Error("result of a tool that has run is an error, want none")
		}
		if len(result.Content) > limit || len(result.Content) < limit-2 || !utf8.ValidString(result.Content) {
			t.Errorf("limit %d: got %d bytes, valid UTF-8: %t, want up to the limit", limit, len(result.Content), utf8.ValidString(result.Content))
		}
		if !strings.HasSuffix(result.Content, "é\n[truncated: the full text has 10000 bytes]") {
			t.Errorf("limit %d: end of the result = %q, want the size of the full text", limit, result.Content[len(result.Content)-60:])
		}
	}
}

func TestFuncFailure(t *testing.T) {
	t.Parallel()
	declined := errors.New("the card was declined: " + strings.Repeat("x", 10_000))
	tool := tools.Func("pay", "", func(context.Context, struct{}) (string, error) { return "", declined })
	result, err := tool.Call(t.Context(), tools.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if !result.IsError || !strings.HasPrefix(result.Content, "the card was declined") || len(result.Content) > 4096 {
		t.Errorf("got %d bytes, failed: %t, %.40q, want a failure of at most 4096 bytes", len(result.Content), result.IsError, result.Content)
	}
	if !errors.Is(result.Cause, declined) {
		t.Errorf("cause is %v, want the tool's own error", result.Cause)
	}
}

func TestPanicIsFailedResult(t *testing.T) {
	t.Parallel()
	tool := tools.Func("boom", "", func(context.Context, struct{}) (string, error) { panic("token=s3cret") })
	result, err := tool.Call(t.Context(), tools.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if !result.IsError || result.Content != "boom failed: internal error" {
		t.Errorf("got %+v, want a failure without internal details", result)
	}
	panicked := (*tools.PanicError)(nil)
	if !errors.As(result.Cause, &panicked) || panicked.Value != "token=s3cret" || !strings.Contains(string(panicked.Stack), "func_test.go") {
		t.Errorf("cause is %v, want the panic with its stack", result.Cause)
	}
	if strings.Contains(result.Cause.Error(), "goroutine") {
		t.Error("text of the error has the stack, want it left out")
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	tool := tools.Func("key", "", func(ctx context.Context, _ struct{}) (string, error) {
		return tools.IdempotencyKey(ctx), nil
	})
	result, err := tool.Call(t.Context(), tools.Call{IdempotencyKey: "run-1/call-2"})
	if err != nil || result.Content != "run-1/call-2" {
		t.Errorf("got %q, %v, want the call's key", result.Content, err)
	}
	if key := tools.IdempotencyKey(t.Context()); key != "" {
		t.Errorf("outside of a call the key is %q, want none", key)
	}
}

func TestRunOfCall(t *testing.T) {
	t.Parallel()
	tool := tools.Func("run", "", func(ctx context.Context, _ struct{}) (tools.Run, error) {
		run, ok := tools.RunOf(ctx)
		if !ok {
			return run, errors.New("no run")
		}
		return run, nil
	})
	want := tools.Run{Tenant: "acme", Requester: "ann", Contributors: []string{"ann", "bob"}, Thread: "t1", ID: "r1", Agent: "support"}
	result, err := tool.Call(t.Context(), tools.Call{Run: want})
	if err != nil {
		t.Fatal(err)
	}
	var got tools.Run
	if err := json.Unmarshal([]byte(result.Content), &got); err != nil || !cmp.Equal(want, got) {
		t.Errorf("run = %s, %v, want %+v", result.Content, err, want)
	}
	if result, err := tool.Call(t.Context(), tools.Call{}); err != nil || result.Content != "no run" {
		t.Errorf("call outside of a run = %q, %v, want no run", result.Content, err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	wait := func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	tests := []struct {
		name string
		tool tools.Tool
		want string
	}{
		{"default", tools.Func("wait", "", wait), "wait did not finish within 30s; the call may have taken effect"},
		{"idempotent", tools.Func("wait", "", wait, tools.Timeout(time.Second), tools.Idempotent()), "wait did not finish within 1s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result, err := tt.tool.Call(t.Context(), tools.Call{})
				if err != nil || !result.IsError || result.Content != tt.want {
					t.Errorf("got %+v, %v, want a failure with %q", result, err, tt.want)
				}
			})
		})
	}
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("stopped by the user")

	t.Run("before the call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopped)
		tool := tools.Func("never", "", func(context.Context, struct{}) (string, error) {
			t.Error("called after the end")
			return "", nil
		})
		_, err := tool.Call(ctx, tools.Call{})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, stopped) {
			t.Errorf("got %v, want the cancellation and its cause", err)
		}
	})
	t.Run("during the call", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		tool := tools.Func("cut", "", func(ctx context.Context, _ struct{}) (string, error) {
			cancel(stopped)
			return "", errors.New("connection closed") // libraries rarely wrap the context's error
		})
		result, err := tool.Call(ctx, tools.Call{})
		if !errors.Is(err, context.Canceled) || result.Content != "" {
			t.Errorf("got %+v, %v, want only the cancellation", result, err)
		}
	})
	t.Run("a result that came is kept", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		tool := tools.Func("done", "", func(context.Context, struct{}) (string, error) {
			cancel(stopped)
			return "paid", nil
		})
		result, err := tool.Call(ctx, tools.Call{})
		if err != nil || result.Content != "paid" {
			t.Errorf("got %+v, %v, want the result: the tool has run", result, err)
		}
	})
}

func TestRefine(t *testing.T) {
	t.Parallel()
	type paint struct {
		Color string `json:"color"`
	}
	tool := tools.Func("paint", "", func(_ context.Context, in paint) (string, error) { return in.Color, nil },
		tools.Refine(func(s *jsonschema.Schema) { s.Properties["color"].Enum = []any{"red", "blue"} }))
	result, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(`{"color":"green"}`)})
	if err != nil || !strings.Contains(result.Content, "/color: value must be one of 'red', 'blue'") {
		t.Errorf("got %+v, %v, want the choice to be named", result, err)
	}
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"orderId":"7","amount":1}`, `{"orderId":"7","amount":1,"copies":1e2}`, `{"amount":1e400}`, `{"a":{"b":[1,{"c":null}]}}`,
		`{"orderId":"7","amount":-0.0,"reasons":null}`, `{"amount":1,"amount":2}`, `[`, ``, `{"orderId":"\ud800","amount":1}`,
	} {
		f.Add([]byte(seed))
	}
	tool := tools.Func("issue_refund", "", echo)
	f.Fuzz(func(t *testing.T, arguments []byte) {
		result, err := tool.Call(t.Context(), tools.Call{Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		if result.IsError {
			if !strings.HasPrefix(result.Content, "invalid arguments: ") {
				t.Errorf("result of %q = %s, want invalid arguments", arguments, result.Content)
			}
			return
		}
		var in refund
		if err := json.Unmarshal(arguments, &in); err != nil {
			t.Errorf("%q was accepted, but does not decode: %v", arguments, err)
		}
		again, err := tool.Call(t.Context(), tools.Call{Arguments: json.RawMessage(result.Content)})
		if err != nil || again.Content != result.Content {
			t.Errorf("%q = %s, and with that as arguments %+v, %v, want the same", arguments, result.Content, again, err)
		}
	})
}
