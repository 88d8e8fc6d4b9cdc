package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/transport/live"
	"github.com/perdure/perdure/internal/transport/sse"
	"github.com/perdure/perdure/internal/workers/models"
	"github.com/perdure/perdure/llm"
)

// serveProxy returns a handler without durability: it calls the model and converts the answer into
// AG-UI events as it streams. It uses the product's own model client and encoders, so that
// durability is the only difference.
func serveProxy(ctx context.Context) error {
	model := models.FromEnv(models.Options{Getenv: os.Getenv, Silence: models.DefaultSilence})["openai"]
	if model == nil {
		return errors.New("there is no openai provider")
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/agents/{agent}/runs", func(w http.ResponseWriter, r *http.Request) {
		if err := proxy(w, r, model); err != nil {
			fmt.Fprintln(os.Stderr, "proxy:", err)
		}
	})
	return serve(ctx, live.Handler(mux, 30*time.Second))
}

// proxy serves a run, and returns why it failed.
func proxy(w http.ResponseWriter, r *http.Request, model llm.Model) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	input, err := agui.DecodeInput(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return err
	}
	out, err := sse.NewWriter(w)
	if err != nil {
		return err
	}
	p := proxied{out: out}
	if err := p.answer(r.Context(), input, model, r.PathValue("agent")); err != nil {
		return errors.Join(err, p.send(&agui.RunError{Message: err.Error()}))
	}
	return nil
}

// proxied is one streaming response.
type proxied struct {
	out  *sse.Writer
	sent int
}

// answer sends the events of a run, except for RUN_ERROR.
func (p *proxied) answer(ctx context.Context, in *agui.RunAgentInput, model llm.Model, name string) error {
	if err := p.send(&agui.RunStarted{ThreadID: in.ThreadID, RunID: in.RunID, ProtocolVersion: agui.Version}); err != nil {
		return err
	}
	id := "msg_" + in.RunID
	open := false
	for chunk, err := range model.Stream(ctx, &llm.Request{Model: name, Messages: said(in)}) {
		if err != nil {
			return err
		}
		delta, ok := chunk.(llm.TextDelta)
		if !ok {
			continue
		}
		if !open {
			open = true
			if err := p.send(&agui.TextMessageStart{MessageID: id, Role: agui.RoleAssistant}); err != nil {
				return err
			}
		}
		if err := p.send(&agui.TextMessageContent{MessageID: id, Delta: delta.Text}); err != nil {
			return err
		}
	}
	if err := p.send(&agui.TextMessageEnd{MessageID: id}); err != nil {
		return err
	}
	return p.send(&agui.RunFinished{ThreadID: in.ThreadID, RunID: in.RunID})
}

// send writes and flushes each event: a proxy has no reason to wait.
func (p *proxied) send(e agui.Event) error {
	data, err := agui.Encode(e)
	if err != nil {
		return err
	}
	p.sent++
	if err := p.out.Event(strconv.Itoa(p.sent), data); err != nil {
		return err
	}
	return p.out.Flush()
}

// said returns the texts of the conversation; the bench sends nothing else.
func said(in *agui.RunAgentInput) []llm.Message {
	messages := make([]llm.Message, 0, len(in.Messages))
	for _, m := range in.Messages {
		messages = append(messages, llm.Message{Role: llm.Role(m.Role), Parts: []llm.Part{llm.Text{Text: m.Content.Text()}}})
	}
	return messages
}
