package e2e

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
)

// villain is a model server that plays tricks: the one that the last user's message names. Where a
// trick is one that a second try helps against, the second call of a run is answered well. It is
// safe for concurrent use.
type villain struct {
	server *httptest.Server
	goOn   chan struct{} // closed when the neighbor may end its answer

	mu    sync.Mutex
	calls map[string]int // by what the user said
}

func openVillain(t *testing.T) *villain {
	t.Helper()
	v := &villain{calls: map[string]int{}, goOn: make(chan struct{})}
	v.server = httptest.NewServer(http.HandlerFunc(v.complete))
	t.Cleanup(v.server.Close)
	return v
}

// environ tells a process to use the villain, and not to wait for it for long.
func (v *villain) environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + v.server.URL + "/v1", "PERDURE_MODEL_SILENCE=8s"}
}

// called counts the calls for what a user said.
func (v *villain) called(prompt string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.calls[prompt]
}

var trickName = regexp.MustCompile(`trick:([a-zA-Z0-9]+)`)

func (v *villain) complete(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Messages []chatMessage `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	prompt := ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			prompt = m.text()
		}
	}
	v.mu.Lock()
	v.calls[prompt]++
	call := v.calls[prompt]
	v.mu.Unlock()
	found := trickName.FindStringSubmatch(prompt)
	a := &act{w: w, r: r, v: v}
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

// act is one answer of the villain.
type act struct {
	w http.ResponseWriter
	r *http.Request
	v *villain
}

// send sends it as it is, and tells whether somebody listens.
func (a *act) send(text string) bool {
	if a.w.Header().Get("Content-Type") == "" {
		a.w.Header().Set("Content-Type", "text/event-stream")
	}
	_, err := io.WriteString(a.w, text)
	if err == nil {
		err = http.NewResponseController(a.w).Flush()
	}
	return err == nil
}

// chunk sends one chunk of a completion; what stands behind the choices may be empty.
func (a *act) chunk(delta, finish, more string) bool {
	return a.send(chunkOf(delta, finish, more))
}

func chunkOf(delta, finish, more string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"villain","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]` + more + "}\n\n"
}

// text sends a piece of text, a JSON literal without its quotes.
func (a *act) text(literal string) bool { return a.chunk(`{"content":"`+literal+`"}`, "null", "") }

func (a *act) stop() {
	a.chunk(`{}`, `"stop"`, "")
	a.send("data: [DONE]\n\n")
}

// call sends a tool call.
func (a *act) call(index, id, arguments string) bool {
	return a.chunk(`{"tool_calls":[{"index":`+index+`,"id":"`+id+`","type":"function","function":{"name":"calculate","arguments":`+arguments+`}}]}`, "null", "")
}

func (a *act) callsEnd() {
	a.chunk(`{}`, `"tool_calls"`, "")
	a.send("data: [DONE]\n\n")
}

func (a *act) untilLeft() { <-a.r.Context().Done() }

// fineAnswer is what the villain says when it plays no trick.
const fineAnswer = mark + " fine"

var large = strings.Repeat(mark+"-", 16<<10)

// tricks are what a model server may do, by name.
var tricks = map[string]func(*act){
	"fine": func(a *act) { a.text(fineAnswer); a.stop() },
	"neighbor": func(a *act) {
		a.text(mark + " I am")
		for { // it is slow, not silent
			select {
			case <-a.v.goOn:
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
	"silent":    (*act).untilLeft,
	"silentMid": func(a *act) { a.text("Hel"); a.untilLeft() },
	"endlessComments": func(a *act) {
		for a.send(": alive\n\n") {
			select {
			case <-time.After(time.Millisecond): // a server's own pace
			case <-a.r.Context().Done():
				return
			}
		}
	},
	"endlessText": func(a *act) {
		for a.text(large) { //nolint:revive // until nobody listens
		}
	},
	"endlessLine": func(a *act) {
		for a.send(large) { //nolint:revive // until nobody listens
		}
	},
	"drip": func(a *act) {
		for _, b := range []byte(chunkOf(`{"content":"`+fineAnswer+`"}`, "null", "") + chunkOf(`{}`, `"stop"`, "") + "data: [DONE]\n\n") {
			a.send(string([]byte{b}))
		}
	},
	"html": func(a *act) {
		a.w.Header().Set("Content-Type", "text/html")
		a.send("<html>" + large + "</html>")
	},
	"wholeJSON": func(a *act) {
		a.w.Header().Set("Content-Type", "application/json")
		a.send(`{"choices":[{"message":{"role":"assistant","content":"` + mark + `"}}]}`)
	},
	"garbage":  func(a *act) { a.send("\x00\xff\xfe{{{[\n\ndata: <>\n\n") },
	"halfCall": func(a *act) { a.call("0", "x", `"{\"expr"`) },
	"errorMid": func(a *act) {
		a.text("Hel")
		a.send(`data: {"error":{"message":"` + mark + `","code":"server_error"}}` + "\n\n")
	},
	"negativeIndex": func(a *act) { a.call("-1", "x", `"{}"`); a.callsEnd() },
	"hugeIndex":     func(a *act) { a.call("9007199254740993", "x", `"{}"`); a.callsEnd() },
	"manyCalls": func(a *act) {
		for i := range 100_000 {
			if !a.call(fmt.Sprint(i), fmt.Sprint("x", i), `"{}"`) {
				return
			}
		}
		a.callsEnd()
	},
	"sameIDs": func(a *act) {
		a.call("0", "x", `"{\"expression\":\"1+1\"}"`)
		a.call("1", "x", `"{\"expression\":\"2+2\"}"`)
		a.callsEnd()
	},
	"badArguments": func(a *act) { a.call("0", "x", `"{\"expression\":\u0000}{][`+mark+`"`); a.callsEnd() },
	"endlessArguments": func(a *act) {
		a.call("0", "x", `"{"`)
		for a.chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"`+large+`"}}]}`, "null", "") { //nolint:revive // until nobody listens
		}
	},
	"noUTF8":   func(a *act) { a.text(mark + " \xff\xfe\\ud800 \xe2\x82"); a.text("\xac \\udc00 \xf0\x9f"); a.stop() },
	"controls": func(a *act) { a.text(mark + ` \u0000 \u001b[2J \u2028 \r\n\r\ndata: {} \ufeff \u202e`); a.stop() },
	"nothing":  func(a *act) { a.stop() },
	"absurdUsage": func(a *act) {
		a.text(fineAnswer)
		a.chunk(`{}`, `"stop"`, `,"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":-1,"total_tokens":1e300,"prompt_tokens_details":{"cached_tokens":4611686018427387904}}`)
		a.send("data: [DONE]\n\n")
	},
	"afterTheEnd": func(a *act) {
		a.text(fineAnswer)
		a.stop()
		for range 1000 {
			a.text("more")
		}
		a.call("0", "x", `"{}"`)
	},
	"redirect": func(a *act) { http.Redirect(a.w, a.r, "http://localhost:9/elsewhere", http.StatusTemporaryRedirect) },
	"gzipBomb": func(a *act) {
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.w.Header().Set("Content-Encoding", "gzip")
		for a.send(packedZeros()) {
		}
	},
}

// packedZeros is a mebibyte of zeros as a member of a gzip file, which may have any number of them.
// It is packed once: packing takes so long with the race detector that the villain would be taken
// for silent.
var packedZeros = sync.OnceValue(func() string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 1<<20)) // a strings.Builder takes everything
	_ = z.Close()
	return b.String()
})
