package httptool_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/httptool"
)

// TestQuestionOfServer: a server asks questions in sequence. The request is repeated with all
// answers so far, and each repetition has another idempotency key.
func TestQuestionOfServer(t *testing.T) {
	t.Parallel()
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		raw, err := base64.StdEncoding.DecodeString(r.Header.Get("Perdure-Answers"))
		var answers []struct {
			Status  string
			Content json.RawMessage
			Words   string
		}
		if err == nil && len(raw) > 0 {
			err = json.Unmarshal(raw, &answers)
		}
		if err != nil {
			t.Error(err)
		}
		if n := len(answers); n < 2 {
			w.Header().Set("Content-Type", "application/vnd.perdure.question+json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = fmt.Fprintf(w, `{"reason":"shop:ask","message":"Question %d, %s?","responseSchema":{"type":"string"},"metadata":{"n":%d},"expiresIn":"2h"}`, n, token, n)
			return
		}
		_, _ = fmt.Fprintf(w, "%s %s %s %s", answers[0].Status, answers[0].Content, answers[1].Status, answers[1].Words)
	}))
	defer server.Close()
	tool := guarded(t, httptool.Config{Method: "POST", URL: server.URL, Headers: map[string]string{"X-Token": "${secret:SHOP_TOKEN}"}}, local)
	call := tools.Call{IdempotencyKey: "r/c", Asks: true}
	for i, answer := range []tools.Answer{{Status: tools.Answered, Content: json.RawMessage(`"yes"`)}, {Status: tools.Declined, Words: "no"}} {
		_, err := tool.Call(t.Context(), call)
		var asks *tools.Raised
		if !errors.As(err, &asks) || asks.Index != i || asks.Message != fmt.Sprintf("Question %d, [secret]?", i) || asks.Reason != "shop:ask" || asks.ExpiresIn != 2*time.Hour ||
			string(asks.ResponseSchema) != `{"type":"string"}` || asks.Metadata["n"] != float64(i) {
			t.Fatalf("question %d = %+v, %v, want its message, reason, schema and time", i, asks, err)
		}
		call.Answers = append(call.Answers, answer)
	}
	if result, err := tool.Call(t.Context(), call); err != nil || result.Content != `answered "yes" declined no` {
		t.Errorf("result = %+v, %v, want all three answers", result, err)
	}
	if want := []string{"r/c", "r/c/1", "r/c/2"}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, want %q", keys, want)
	}
	call.Answers = []tools.Answer{{Status: tools.Answered, Content: json.RawMessage(`"` + strings.Repeat("x", 6<<10) + `"`)}}
	if result, err := tool.Call(t.Context(), call); err != nil || !result.IsError || !strings.Contains(result.Content, "too long") || len(keys) != 3 {
		t.Errorf("long answers: got %+v, %v after %d requests, want a failure after 3", result, err, len(keys))
	}
}

func TestInvalidQuestions(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text": "Where to?", "empty": `{}`, "list": `[]`, "reason": `{"message":"x","reason":"tool_call"}`, "expiry": `{"message":"x","expiresIn":"soon"}`,
		"schema": `{"message":"x","responseSchema":{"type":7}}`, "large": `{"message":"x","other":"` + strings.Repeat("x", 64<<10) + `"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.perdure.question+json")
			w.WriteHeader(http.StatusAccepted)
			_, _ = w.Write([]byte(body))
		}))
		result, err := guarded(t, httptool.Config{Method: "POST", URL: server.URL}, local).Call(t.Context(), tools.Call{Asks: true})
		if err != nil || !result.IsError || !strings.Contains(result.Content, "the server's question cannot be asked") {
			t.Errorf("%s: got %+v, %v, want a failure", name, result, err)
		}
		server.Close()
	}
}
