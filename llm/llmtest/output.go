package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/perdure/perdure/llm"
)

// testOutput checks structured output. The suite's server is not the vendor's endpoint, so the
// provider must send the schema of the answer only on explicit request, and only if its API can
// express it. The answer is ordinary text in every case.
func testOutput(t *testing.T, p Provider) {
	const (
		schema = `{"type":"object","required":["verdict"],"properties":{"verdict":{"type":"string","description":"of the \u00e9lite"}},"additionalProperties":false}`
		answer = `{"verdict":"yes"}`
	)
	yes, no := true, false
	for name, test := range map[string]struct {
		output llm.Output
		handed bool
	}{
		"native":               {llm.Output{Schema: []byte(schema), Native: &yes}, true},
		"not native":           {llm.Output{Schema: []byte(schema), Native: &no}, false},
		"nothing said":         {llm.Output{Schema: []byte(schema)}, false},
		"a schema of anything": {llm.Output{Schema: []byte(`{"properties":{"verdict":{}}}`), Native: &yes}, false},
		"no schema":            {llm.Output{Schema: []byte(`{"verdict`), Native: &yes}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := make(chan string, 1)
			s := serve(t, p, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent <- string(body)
				e := p.NewEncoder()
				events(w, e.Begin(), e.Text(literal(answer[:5])), e.Text(literal(answer[5:])), e.Finish(llm.FinishStop, llm.Usage{}))
			})
			req := request()
			req.Output = &test.output
			outcome := Stream(t, t.Context(), s.model, req)
			if outcome.Err != nil || outcome.Message.Text() != answer {
				t.Errorf("the answer is %q, %v, want %q", outcome.Message.Text(), outcome.Err, answer)
			}
			body := <-sent
			if sent := strings.Contains(body, "verdict"); sent != test.handed {
				t.Errorf("the schema was handed over: %v, want %v: %s", sent, test.handed, body)
			}
			if test.handed && !strings.Contains(body, schema) {
				t.Errorf("the schema was changed: %s", body)
			}
		})
	}
}
