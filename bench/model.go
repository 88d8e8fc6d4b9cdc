package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// serveModel returns a model that serves OpenAI's chat completions and counts.
func serveModel(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", complete)
	return serve(ctx, mux)
}

// complete answers a request for a chat completion, at the pace that the model's name says.
func complete(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    pace `json:"model"`
		Messages []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s, ok := speeches[req.Model]
	if !ok {
		http.Error(w, fmt.Sprintf("there is no model %q", req.Model), http.StatusNotFound)
		return
	}
	if len(req.Messages) > 0 && req.Messages[len(req.Messages)-1].Role == "tool" {
		s = speeches[instant]
	}
	w.Header().Set("Content-Type", "text/event-stream")
	a := answer{w: w, flush: http.NewResponseController(w).Flush, model: req.Model, speech: s}
	if s.interval == 0 {
		a.speakAtOnce()
	} else {
		a.speakPaced(r.Context())
	}
}

// answer is one streamed completion.
type answer struct {
	w      http.ResponseWriter
	flush  func() error
	model  pace
	speech speech
	buf    []byte
}

// speakAtOnce sends all tokens in one write.
func (a *answer) speakAtOnce() {
	for i := range a.speech.tokens {
		a.token(i)
	}
	a.end()
	_ = a.send() // a disconnected client needs no response
}

// speakPaced is silent, and then sends each token at its time since the first one: a late token does
// not delay the next one.
func (a *answer) speakPaced(ctx context.Context) {
	if wait(ctx, a.speech.silence) != nil {
		return
	}
	tick := time.NewTicker(a.speech.interval)
	defer tick.Stop()
	last := a.speech.tokens - 1
	for i := range a.speech.tokens {
		a.token(i)
		if i == last {
			a.end()
		}
		if a.send() != nil || i == last {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (a *answer) token(i int) {
	a.chunk(func() {
		a.buf = append(a.buf, `{"index":0,"delta":{"content":"`...)
		a.buf = appendToken(a.buf, i, micros(), a.speech.padding)
		a.buf = append(a.buf, `"},"finish_reason":null}`...)
	}, "null")
}

func (a *answer) end() {
	reason := "stop"
	if call := a.speech.call; call != nil {
		reason = "tool_calls"
		a.chunk(func() {
			a.buf = fmt.Appendf(a.buf, `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call","type":"function","function":{"name":%q,"arguments":%q}}]},"finish_reason":null}`, call.tool, call.arguments)
		}, "null")
	}
	a.chunk(func() { a.buf = fmt.Appendf(a.buf, `{"index":0,"delta":{},"finish_reason":%q}`, reason) }, "null")
	a.chunk(func() {}, fmt.Sprintf(`{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}`, a.speech.tokens, a.speech.tokens+10))
	a.buf = append(a.buf, "data: [DONE]\n\n"...)
}

func (a *answer) chunk(choice func(), usage string) {
	a.buf = append(a.buf, `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"`...)
	a.buf = append(a.buf, a.model...)
	a.buf = append(a.buf, `","choices":[`...)
	choice()
	a.buf = append(a.buf, `],"usage":`...)
	a.buf = append(a.buf, usage...)
	a.buf = append(a.buf, "}\n\n"...)
}

func (a *answer) send() error {
	if _, err := a.w.Write(a.buf); err != nil {
		return err
	}
	a.buf = a.buf[:0]
	return a.flush()
}
