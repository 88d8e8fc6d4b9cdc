package models

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// hostileModel is a model server that misbehaves as the last user message names. If a retry helps,
// the second call of a run gets a good answer. It is safe for concurrent use.
type hostileModel struct {
	server  *httptest.Server
	release chan struct{} // closed when the concurrent run may end its answer

	mu    sync.Mutex
	calls map[string]int // by user message
}

// startHostileModel starts a model server with hostile answers.
func startHostileModel(t *testing.T) *hostileModel {
	t.Helper()
	v := &hostileModel{calls: map[string]int{}, release: make(chan struct{})}
	v.server = httptest.NewServer(http.HandlerFunc(v.complete))
	t.Cleanup(v.server.Close)
	return v
}

// environ returns the environment variables that make a process use the model, with a short
// timeout.
func (v *hostileModel) environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + v.server.URL + "/v1", "PERDURE_MODEL_SILENCE=8s"}
}

// countCall counts a call with a prompt and returns the number of calls so far.
func (v *hostileModel) countCall(prompt string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls[prompt]
}

var trickName = regexp.MustCompile(`trick:([a-zA-Z0-9]+)`)

// complete answers a model call.
func (v *hostileModel) complete(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []kit.ChatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	prompt := ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			prompt = m.Text()
		}
	}
	v.mu.Lock()
	v.calls[prompt]++
	call := v.calls[prompt]
	v.mu.Unlock()
	found := trickName.FindStringSubmatch(prompt)
	a := &hostileAnswer{w: w, r: r, v: v}
	trick := tricks["fine"]
	if found != nil && call == 1 {
		trick = tricks[found[1]]
	}
	if trick == nil {
		http.Error(w, "there is no such trick", http.StatusNotFound)
		return
	}
	trick(a)
}

// hostileAnswer is one answer of the hostile model.
type hostileAnswer struct {
	w http.ResponseWriter
	r *http.Request
	v *hostileModel
}

// send sends a text unchanged, and reports whether the client is connected.
func (a *hostileAnswer) send(text string) bool {
	if a.w.Header().Get("Content-Type") == "" {
		a.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, err := io.WriteString(a.w, text)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	return err == nil
}

// chunk sends one chunk of a completion. more is appended after the choices; it may be empty.
func (a *hostileAnswer) chunk(delta, finish, more string) bool {
	return a.send(chunkOf(delta, finish, more))
}

// chunkOf returns a chunk of an answer.
func chunkOf(delta, finish, more string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"hostile","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` + more + "}\n\n"
}

// text sends a text, which is a JSON literal without its quotes.
func (a *hostileAnswer) text(literal string) bool {
	return a.chunk(`{"content":"`+literal+`"}`, "null", "")
}

// stop ends the answer.
func (a *hostileAnswer) stop() {
	a.chunk(`{}`, `"stop"`, "")
	a.send("data: [DONE]\n\n")
}

// call sends a tool call.
func (a *hostileAnswer) call(index, id, arguments string) bool {
	return a.chunk(`{"tool_calls":[{"index":`+index+`,"id":"`+id+`","type":"function","function":{"name":"calculate","arguments":`+arguments+`}}]}`, "null", "")
}

// endCalls ends the answer with its tool calls.
func (a *hostileAnswer) endCalls() {
	a.chunk(`{}`, `"tool_calls"`, "")
	a.send("data: [DONE]\n\n")
}

// untilDisconnect waits until the client disconnects.
func (a *hostileAnswer) untilDisconnect() { <-a.r.Context().Done() }

// fineAnswer is a good answer.
const fineAnswer = kit.Mark + " fine"

var large = strings.Repeat(kit.Mark+"-", 16<<10)

// tricks are the misbehaviors by name.
var tricks = map[string]func(*hostileAnswer){
	"fine": func(a *hostileAnswer) { a.text(fineAnswer); a.stop() },
	"neighbor": func(a *hostileAnswer) {
		a.text(kit.Mark + " I am")
		for { // slow, but not silent
			select {
			case <-a.v.release:
				a.text(" the neighbor")
				a.stop()
				return
			case <-time.After(time.Second):
				a.text(".")
			case <-a.r.Context().Done():
				return
			}
		}
	},
	"silent":    (*hostileAnswer).untilDisconnect,
	"silentMid": func(a *hostileAnswer) { a.text("Hel"); a.untilDisconnect() },
	"endlessComments": func(a *hostileAnswer) {
		for a.send(": alive\n\n") {
			select {
			case <-time.After(time.Millisecond): // interval between two chunks
			case <-a.r.Context().Done():
				return
			}
		}
	},
	"endlessText": func(a *hostileAnswer) {
		for a.text(large) { //nolint:revive // until the client disconnects
		}
	},
	"endlessLine": func(a *hostileAnswer) {
		for a.send(large) { //nolint:revive // until the client disconnects
		}
	},
	"drip": func(a *hostileAnswer) {
		for _, b := range []byte(chunkOf(`{"content":"`+fineAnswer+`"}`, "null", "") + chunkOf(`{}`, `"stop"`, "") + "data: [DONE]\n\n") {
			a.send(string([]byte{b}))
		}
	},
	"html": func(a *hostileAnswer) {
		a.w.Header().Set("Content-Type", "text/html")
		a.send("<html>" + large + "</html>")
	},
	"wholeJSON": func(a *hostileAnswer) {
		a.w.Header().Set("Content-Type", "application/json")
		a.send(`{"choices":[{"message":{"role":"assistant","content":"` + kit.Mark + `"}}]}`)
	},
	"garbage":  func(a *hostileAnswer) { a.send("\x00\xff\xfe{{{[\n\ndata: <>\n\n") },
	"halfCall": func(a *hostileAnswer) { a.call("0", "x", `"{\"expr"`) },
	"errorMid": func(a *hostileAnswer) {
		a.text("Hel")
		a.send(`data: {"error":{"message":"` + kit.Mark + `","code":"server_error"}}` + "\n\n")
	},
	"negativeIndex": func(a *hostileAnswer) { a.call("-1", "x", `"{}"`); a.endCalls() },
	"hugeIndex":     func(a *hostileAnswer) { a.call("9007199254740993", "x", `"{}"`); a.endCalls() },
	"manyCalls": func(a *hostileAnswer) {
		for i := range 100_000 {
			if !a.call(fmt.Sprint(i), fmt.Sprint("x", i), `"{}"`) {
				return
			}
		}
		a.endCalls()
	},
	"sameIDs": func(a *hostileAnswer) {
		a.call("0", "x", `"{\"expression\":\"1+1\"}"`)
		a.call("1", "x", `"{\"expression\":\"2+2\"}"`)
		a.endCalls()
	},
	"badArguments": func(a *hostileAnswer) { a.call("0", "x", `"{\"expression\":\u0000}{][`+kit.Mark+`"`); a.endCalls() },
	"endlessArguments": func(a *hostileAnswer) {
		a.call("0", "x", `"{"`)
		for a.chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"`+large+`"}}]}`, "null", "") { //nolint:revive // until the client disconnects
		}
	},
	"noUTF8": func(a *hostileAnswer) {
		a.text(kit.Mark + " \xff\xfe\\ud800 \xe2\x82")
		a.text("\xac \\udc00 \xf0\x9f")
		a.stop()
	},
	"controls": func(a *hostileAnswer) {
		a.text(kit.Mark + ` \u0000 \u001b[2J \u2028 \r\n\r\ndata: {} \ufeff \u202e`)
		a.stop()
	},
	"nothing": func(a *hostileAnswer) { a.stop() },
	"absurdUsage": func(a *hostileAnswer) {
		a.text(fineAnswer)
		a.chunk(`{}`, `"stop"`, `,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":-1,"total_tokens":1e300,"prompt_tokens_details":{"cached_tokens":4611686018427387904}}`)
		a.send("data: [DONE]\n\n")
	},
	"afterTheEnd": func(a *hostileAnswer) {
		a.text(fineAnswer)
		a.stop()
		for range 1000 {
			a.text("more")
		}
		a.call("0", "x", `"{}"`)
	},
	"redirect": func(a *hostileAnswer) {
		http.Redirect(a.w, a.r, "http://localhost:9/elsewhere", http.StatusTemporaryRedirect)
	},
	"gzipBomb": func(a *hostileAnswer) {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.w.Header().Set("Content-Encoding", "gzip")
		for a.send(packedZeros()) {
		}
	},
}

// packedZeros returns a mebibyte of zeros as a member of a gzip file, which may have any number of
// members. It is packed once: with the race detector, packing takes longer than the model's
// timeout.
var packedZeros = sync.OnceValue(func() string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20)) // a strings.Builder does not fail
	_ = z.Close()
	return b.String()
})
