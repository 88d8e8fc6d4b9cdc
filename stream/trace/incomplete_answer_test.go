package trace_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/trace"
)

// TestIncompleteAnswers: a model call whose answer is incomplete has the reason. It has failed only if the
// answer must fit a schema, and is not sent back.
func TestIncompleteAnswers(t *testing.T) {
	t.Parallel()
	const cut, refused = "the answer was cut at the model's limit of output tokens", "the model refused to answer, or its provider withheld the answer"
	for name, c := range map[string]struct {
		answer, detail        string
		status, code, message string
	}{
		"complete":         {`"finish":"stop"`, "", "finished", "", ""},
		"cut":              {`"finish":"length"`, "", "finished", "length", cut},
		"refused":          {`"finish":"content_filter"`, "", "finished", "content_filter", refused},
		"cut, sent back":   {`"finish":"length","output":"repair"`, cut, "finished", "invalid_output", "the answer does not fit the schema, and was sent back: " + cut},
		"cut, invalid":     {`"finish":"length","output":"invalid"`, cut, "failed", "invalid_output", "the answer does not fit the schema: " + cut},
		"refused, invalid": {`"finish":"content_filter","output":"invalid"`, refused, "failed", "content_filter", "the answer does not fit the schema: " + refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := setup(t)
			result := stream.Result{}
			if c.detail != "" {
				result.Kept = json.RawMessage(fmt.Sprintf(`{"detail":%q}`, c.detail))
			}
			l.finish(l.begin(stream.LaneMain, "1/model"), stream.LaneMain, result, `{"outcome":"success","messageId":"m",`+c.answer+`}`)
			l.seal(&agui.RunFinished{ThreadID: "t", RunID: "r"})
			for _, span := range l.read().Spans {
				if span.Kind != trace.KindModel {
					continue
				}
				var got trace.Error
				if span.Error != nil {
					got = *span.Error
				}
				if string(span.Status) != c.status || got.Code != c.code || got.Message != c.message || (got.Hint == "") != (c.code == "") {
					t.Errorf("model call = %s, %+v, want %s, %s: %s", span.Status, got, c.status, c.code, c.message)
				}
			}
		})
	}
}
