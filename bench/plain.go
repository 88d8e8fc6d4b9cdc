package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/builtin"
)

// Plain workflows use only Temporal's SDK with its defaults, to do the work of the measured
// pipelines: the same tool and the same model. Clients cannot watch their progress, and nothing
// stores their output.

// plainQueue is the task queue of plain workflows.
const plainQueue = "plain"

// plainWork is the work of a plain workflow.
type plainWork struct {
	Count  int `json:"count"`
	AtOnce int `json:"atOnce,omitempty"`
}

// plainDone is the work that was done.
type plainDone struct {
	Count  int    `json:"count"`
	Spoken spoken `json:"spoken,omitempty"`
}

// plain has the activities.
type plain struct {
	calculate tools.Tool
	model     string // base URL
}

// servePlain returns a worker of plain workflows.
func servePlain(ctx context.Context) error {
	c, err := client.DialContext(ctx, client.Options{
		HostPort: os.Getenv("TEMPORAL_ADDRESS"), Namespace: os.Getenv("TEMPORAL_NAMESPACE"),
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	p := &plain{calculate: builtin.Calculate(), model: os.Getenv("OPENAI_BASE_URL")}
	w := worker.New(c, plainQueue, worker.Options{})
	for name, program := range map[string]any{"steps": p.steps, "text": p.text, "items": p.items, "item": p.item, "handing": p.handing, "speaking": p.speaking} {
		w.RegisterWorkflowWithOptions(program, workflow.RegisterOptions{Name: name})
	}
	w.RegisterActivity(p.Calculate)
	w.RegisterActivity(p.Speak)
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("ready") //nolint:forbidigo // it is what the other side waits for
	select {
	case <-abandoned():
	case <-ctx.Done():
	}
	return nil
}

// Calculate returns the call of a step.
func (p *plain) Calculate(ctx context.Context, expression string) (string, error) {
	args, err := json.Marshal(map[string]string{"expression": expression})
	if err != nil {
		return "", err
	}
	result, err := p.calculate.Call(ctx, tools.Call{ID: "call", Arguments: args})
	if err == nil && result.IsError {
		err = errors.New(result.Content)
	}
	return result.Content, err
}

// Speak calls the model.
func (p *plain) Speak(ctx context.Context) (s spoken, err error) {
	body := fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"Count."}]}`, instant)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.model+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if err := s.listen(lines.Bytes(), dialectOpenAI); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func withOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
}

// text calls the model once.
func (p *plain) text(ctx workflow.Context, _ plainWork) (done plainDone, err error) {
	done.Spoken, err = p.speaking(ctx)
	return done, err
}

// steps makes one call after another.
func (p *plain) steps(ctx workflow.Context, in plainWork) (done plainDone, err error) {
	for range in.Count {
		if _, err := p.item(ctx); err != nil {
			return done, err
		}
		done.Count++
	}
	return done, nil
}

// item makes one call. It is a workflow too.
func (p *plain) item(ctx workflow.Context) (value string, err error) {
	err = workflow.ExecuteActivity(withOptions(ctx), p.Calculate, expression).Get(ctx, &value)
	return value, err
}

// items starts a child for each item, with a bounded number at a time.
func (p *plain) items(ctx workflow.Context, in plainWork) (done plainDone, err error) {
	ended := workflow.NewSelector(ctx)
	for begun := 0; done.Count < in.Count && err == nil; {
		for ; begun < in.Count && begun-done.Count < in.AtOnce; begun++ {
			ended.AddFuture(workflow.ExecuteChildWorkflow(ctx, "item"), func(f workflow.Future) {
				var value string
				err = f.Get(ctx, &value)
				done.Count++
			})
		}
		ended.Select(ctx)
	}
	return done, err
}

// handing calls the model, starts a child that calls it, and calls it again.
func (p *plain) handing(ctx workflow.Context, _ plainWork) (done plainDone, err error) {
	for _, speak := range []func(workflow.Context) (spoken, error){p.speaking, handsOver, p.speaking} {
		s, err := speak(ctx)
		if err != nil {
			return done, err
		}
		done.Spoken = append(done.Spoken, s...)
	}
	return done, nil
}

func handsOver(ctx workflow.Context) (s spoken, err error) {
	err = workflow.ExecuteChildWorkflow(ctx, "speaking").Get(ctx, &s)
	return s, err
}

// speaking calls the model. It is a workflow too.
func (p *plain) speaking(ctx workflow.Context) (s spoken, err error) {
	err = workflow.ExecuteActivity(withOptions(ctx), p.Speak).Get(ctx, &s)
	return s, err
}
