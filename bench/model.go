package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// serveModel is a model that speaks OpenAI's chat completions and knows nothing but to count.
func serveModel(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", complete)
	return serve(ctx, mux)
}

func complete(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model pace `json:"model"`
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	a := answer{w: w, flush: http.NewResponseController(w).Flush, model: req.Model}
	switch req.Model {
	case instant:
		a.speakAtOnce()
	case paced:
		a.speakPaced(r.Context())
	default:
		http.Error(w, fmt.Sprintf("there is no model %q", req.Model), http.StatusNotFound)
	}
}

// answer is one streamed completion.
type answer struct {
	w     http.ResponseWriter
	flush func() error
	model pace
	buf   []byte
}

func (a *answer) speakAtOnce() {
	for i := range tokensPerRun {
		a.token(i)
	}
	a.end()
	_ = a.send() // a client that is gone needs no answer
}

// speakPaced keeps the pace from the start on: a token that is late does not make the next one late.
func (a *answer) speakPaced(ctx context.Context) {
	tick := time.NewTicker(tokenInterval)
	defer tick.Stop()
	for i := range tokensPerRun {
		a.token(i)
		if i == tokensPerRun-1 {
			a.end()
		}
		if a.send() != nil {
			return
		}
		if i == tokensPerRun-1 {
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
		a.buf = appendToken(a.buf, i, micros())
		a.buf = append(a.buf, `"},"finish_reason":null}`...)
	}, "null")
}

func (a *answer) end() {
	a.chunk(func() { a.buf = append(a.buf, `{"index":0,"delta":{},"finish_reason":"stop"}`...) }, "null")
	a.chunk(func() {}, fmt.Sprintf(`{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}`, tokensPerRun, tokensPerRun+10))
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
