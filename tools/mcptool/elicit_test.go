package mcptool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/tools"
	"github.com/perdure/perdure/tools/mcptool"
)

var formSchema = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}

// asks adds a tool that returns two elicitations as its result, and a tool that elicits during its
// call.
func (p *playground) asks() {
	p.add("rounds", nil, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if len(req.Params.InputResponses) == 0 {
			want := func(message string) *mcp.ElicitParams {
				return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: formSchema}
			}
			return &mcp.CallToolResult{RequestState: "mine", InputRequests: mcp.InputRequestMap{"a": want("From?"), "b": want("To?")}}, nil
		}
		said := fmt.Sprint(req.Params.RequestState)
		for _, name := range []string{"a", "b"} {
			answer, ok := req.Params.InputResponses[name].(*mcp.ElicitResult)
			if !ok {
				return nil, fmt.Errorf("%T", req.Params.InputResponses[name])
			}
			said += fmt.Sprint(" ", answer.Action, answer.Content["city"])
		}
		return text(said), nil
	})
	p.add("inside", nil, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		said := ""
		for _, message := range []string{"From?", "To?"} {
			answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: formSchema})
			if err != nil {
				return nil, err
			}
			said += fmt.Sprint(" ", answer.Action, answer.Content["city"])
		}
		return text(said), nil
	})
}

// conduct calls a tool as the engine does, until it has a result. It answers the first question and
// declines the second.
func (c *connection) conduct(t *testing.T, own string) (result tools.Result, asked []string) {
	t.Helper()
	call := tools.Call{ID: "c1", IdempotencyKey: "r1/c1", Asks: true}
	for range 3 {
		result, err := c.find(t, own).Call(t.Context(), call)
		var asks *tools.Raised
		if !errors.As(err, &asks) {
			if err != nil {
				t.Fatal(err)
			}
			return result, asked
		}
		asked = append(asked, asks.Message)
		if asks.Index != len(call.Answers) || !strings.Contains(string(asks.ResponseSchema), "city") {
			t.Errorf("question = %+v, want that of the next answer, with the schema", asks)
		}
		answer := tools.Answer{Question: asks.Digest(), State: asks.State, Status: tools.Declined}
		if len(call.Answers) == 0 {
			answer.Status, answer.Content = tools.Answered, json.RawMessage(`{"city":"Ulm"}`)
		}
		call.Answers = append(call.Answers, answer)
	}
	t.Fatal("the tool asks more questions than expected")
	return result, asked
}

// TestElicitationBecomesQuestion: the questions of a server are asked in sequence and the call is
// repeated, with either kind of elicitation. An older server gets one call at a time, so that
// concurrent calls get their own answers.
func TestElicitationBecomesQuestion(t *testing.T) {
	t.Parallel()
	for own, serve := range map[string]func(*testing.T) (*playground, *httptest.Server){
		"rounds": func(t *testing.T) (*playground, *httptest.Server) {
			t.Helper()
			return web(t, &mcp.StreamableHTTPOptions{Stateless: true})
		},
		"inside": old,
	} {
		t.Run(own, func(t *testing.T) {
			t.Parallel()
			p, server := serve(t)
			p.asks()
			c := connect(t, mcptool.Config{URL: server.URL, Elicitation: true, Headers: map[string]string{"Authorization": "Bearer ${secret:TOKEN}"}})
			c.log.await(t, connected, 1)
			want := map[string]string{"rounds": "mine acceptUlm decline<nil>", "inside": " acceptUlm decline<nil>"}[own]
			var calls sync.WaitGroup
			for range 3 {
				calls.Go(func() {
					result, asked := c.conduct(t, own)
					if result.Content != want || result.IsError || fmt.Sprint(asked) != "[From? To?]" {
						t.Errorf("%q: result: got %+v, want %q", asked, result, want)
					}
				})
			}
			calls.Wait()
		})
	}
}

// TestElicitationIsRefusedByDefault: if elicitation is not allowed, the server gets a refusal, and
// the model is informed as well.
func TestElicitationIsRefusedByDefault(t *testing.T) {
	t.Parallel()
	p, server := web(t, &mcp.StreamableHTTPOptions{Stateless: true})
	p.asks()
	c := connect(t, mcptool.Config{URL: server.URL, Headers: map[string]string{"Authorization": "Bearer ${secret:TOKEN}"}})
	c.log.await(t, connected, 1)
	if result, asked := c.conduct(t, "rounds"); !result.IsError || !strings.Contains(result.Content, "elicitation is not set") || len(asked) > 0 {
		t.Errorf("questions %q: result = %+v, want that elicitation is not set", asked, result)
	}
}
