package models

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// meter is a model server that records what it bills. It implements Chat Completions, calls the
// tools that it is offered, and at random refuses requests, breaks connections and reports no
// usage. The usage of each answer is unique, so that a sum identifies its answers. A meter is safe
// for concurrent use.
type meter struct {
	server *httptest.Server

	mu      sync.Mutex
	random  *rand.Rand
	journal []*billed
}

// billed is one recorded request.
type billed struct {
	thread string
	// step is the Idempotency-Key, which all attempts of a step share.
	step          string
	refused       bool
	whole         bool // the whole answer was sent, even if the client had disconnected
	noUsage       bool // the answer reports no usage
	input, output int64
	sentBytes     int64 // bytes of text and tool calls
}

// startMeter starts a model server that notes what it bills.
func startMeter(t *testing.T, random *rand.Rand) *meter {
	t.Helper()
	m := &meter{random: random}
	m.server = httptest.NewServer(http.HandlerFunc(m.complete))
	t.Cleanup(m.server.Close)
	return m
}

// environ returns the settings for a process that uses the meter.
func (m *meter) environ() []string {
	return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + m.server.URL + "/v1"}
}

// journalOf returns the requests of a thread.
func (m *meter) journalOf(thread string) []billed {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []billed
	for _, b := range m.journal {
		if b.thread == thread {
			all = append(all, *b)
		}
	}
	return all
}

// threadMark matches the thread id in a text.
var threadMark = regexp.MustCompile(`thread-[A-Z0-9]+`)

type meteredRequest struct {
	Messages []kit.ChatMessage `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// answerPlan determines how a request is answered.
type answerPlan struct {
	chunks  int
	pause   time.Duration
	refuses bool
	breaks  int // number of chunks before the connection breaks; -1 = never
	silent  bool
	tools   int // number of tool calls, if the request has tools
}

// begin notes a model call, and returns its answer.
func (m *meter) begin(thread, step string) (*billed, answerPlan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.random
	p := answerPlan{chunks: 2 + r.IntN(14), pause: time.Duration(1+r.IntN(40)) * time.Millisecond, breaks: -1, tools: 1 + r.IntN(2)}
	switch r.IntN(20) {
	case 0:
		p.refuses = true
	case 1:
		p.breaks = r.IntN(p.chunks)
	case 2:
		p.silent = true
	}
	b := &billed{thread: thread, step: step, refused: p.refuses, noUsage: p.silent, input: 1 + r.Int64N(1<<20), output: 1 + r.Int64N(1<<20)}
	m.journal = append(m.journal, b)
	return b, p
}

// complete answers a model call.
func (m *meter) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req meteredRequest
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	thread := threadMark.Find(body)
	b, p := m.begin(string(thread), r.Header.Get("Idempotency-Key"))
	if p.refuses {
		w.Header().Set("Retry-After-Ms", "50")
		http.Error(w, `{"error":{"message":"slower","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
		return
	}
	a := &hostileAnswer{w: w, r: r}
	last := req.Messages[len(req.Messages)-1]
	if len(req.Tools) > 0 && last.Role == "user" {
		m.callTools(a, b, p, req.Tools[0].Function.Name)
		return
	}
	for i := range p.chunks {
		if !a.pace(i == p.breaks, p.pause) {
			return
		}
		text := fmt.Sprintf("word %d of %s ", i, thread)
		m.record(b, text)
		if !a.text(text) {
			return
		}
	}
	m.report(a, b, "stop")
}

// pace waits between two chunks, or breaks the connection. It reports whether the client is
// connected.
func (a *hostileAnswer) pace(breaks bool, pause time.Duration) bool {
	if breaks {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(pause): // interval between two chunks
		return true
	case <-a.r.Context().Done():
		return false
	}
}

// callTools answers with tool calls.
func (m *meter) callTools(a *hostileAnswer, b *billed, p answerPlan, tool string) {
	arguments := `{"expression":"6*7"}`
	if tool != "calculate" {
		arguments = fmt.Sprintf(`{"task":"Find out for %s."}`, b.thread)
	}
	quoted, _ := json.Marshal(arguments) // a string always has a JSON form
	for i := range p.tools {
		delta := fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"c%d","type":"function","function":{"name":%q,"arguments":%s}}]}`, i, i, tool, quoted)
		if !a.pace(p.breaks == i, p.pause) {
			return
		}
		m.record(b, tool+arguments)
		if !a.chunk(delta, "null", "") {
			return
		}
	}
	m.report(a, b, "tool_calls")
}

// record adds a text to the bytes that the request was sent.
func (m *meter) record(b *billed, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.sentBytes += int64(len(text))
}

// report ends an answer.
func (m *meter) report(a *hostileAnswer, b *billed, reason string) {
	if a.r.Context().Err() != nil {
		return
	}
	m.mu.Lock()
	b.whole = true
	m.mu.Unlock()
	usage := ""
	if !b.noUsage {
		usage = fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, b.input, b.output, b.input+b.output)
	}
	a.send(strings.Join([]string{chunkOf(`{}`, `"`+reason+`"`, usage), "data: [DONE]\n\n"}, ""))
}
