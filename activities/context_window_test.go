package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/tools"
)

// conversationOf returns a conversation of pairs of messages, with about 100 tokens in each
// message.
func conversationOf(pairs int) []agui.Message {
	var messages []agui.Message
	for i := range pairs {
		for _, role := range []agui.Role{agui.RoleAssistant, agui.RoleUser} {
			text := fmt.Sprintf("%s %d %s", role, i, strings.Repeat("word ", 78))
			messages = append(messages, agui.Message{ID: fmt.Sprintf("%s%d", role, i), Role: role, Content: agui.TextContent(text)})
		}
	}
	return messages
}

// requestTokens returns the tokens of a request by the documented rule: four characters are a
// token.
func requestTokens(req *llm.Request) (tokens int) {
	for _, m := range req.Messages {
		tokens += len(m.Text()) / 4
		for _, c := range m.ToolCalls {
			tokens += len(c.Arguments) / 4
		}
	}
	return tokens
}

// requestTexts returns the texts of a request's messages, one a line.
func requestTexts(req *llm.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		fmt.Fprintf(&b, "%s: %.40s\n", m.Role, m.Text())
	}
	return b.String()
}

func TestPromptFitsTheContextWindow(t *testing.T) {
	t.Parallel()
	var asked *llm.Request
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) { asked = req; return textAnswer("ok") })
	fixture.agent.Context = agents.Context{MaxTokens: 2000, Keep: agents.Keep{First: 1, Last: 4}}
	fixture.more = conversationOf(40)
	fixture.run("the very first question")
	if n := requestTokens(asked); n > 2000 || n < 1000 {
		t.Errorf("size of the request: got about %d tokens, want most of 2000", n)
	}
	m := asked.Messages
	wantEqual(t, "first message", m[0].Text(), "Be brief.")
	wantEqual(t, "second message", m[1].Text(), "the very first question")
	if !strings.Contains(m[2].Text(), "left out") {
		t.Errorf("third message = %q, want text with %q", m[2].Text(), "left out")
	}
	last := m[len(m)-1].Text()
	if !strings.HasPrefix(last, "user 39") {
		t.Errorf("last message = %q, want prefix %q", last, "user 39")
	}
	if n := len(fixture.conversation()); n != 82 {
		t.Errorf("messages in the conversation: got %d, want 82", n)
	}
}

// TestLargeResultIsCutForModel: a request is shortened by whole calls with all their
// results, and within a result that is too large by itself. The conversation keeps all.
func TestLargeResultIsCutForModel(t *testing.T) {
	t.Parallel()
	const large = 60_000
	dump := tools.Func("dump", "dumps", func(context.Context, struct{}) (string, error) {
		return "begin " + strings.Repeat("x", large) + " end", nil
	})
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		open := map[string]bool{}
		for _, m := range req.Messages {
			for _, c := range m.ToolCalls {
				open[c.ID] = true
			}
			if m.Role == llm.RoleTool && !open[m.ToolCallID] {
				t.Errorf("call %d: got a result without its call in\n%s\nwant both", n, requestTexts(req))
			}
			if len(m.Text()) > 2100 {
				t.Errorf("call %d: size of a message = %d bytes, want at most 2100", n, len(m.Text()))
			}
		}
		if n > 1 {
			last := req.Messages[len(req.Messages)-1].Text()
			if !strings.HasPrefix(last, "begin x") || !strings.HasSuffix(last, "x end") || !strings.Contains(last, "are left out here") {
				t.Errorf("call %d: result sent = %.40q, want its beginning and its end", n, last)
			}
			if requestTokens(req) > 2000 {
				t.Errorf("call %d: size of the request = about %d tokens, want at most 2000", n, requestTokens(req))
			}
		}
		if n == 5 {
			return textAnswer("done")
		}
		return callAnswer([3]string{fmt.Sprint("c", n), "dump", "{}"}, [3]string{fmt.Sprint("d", n), "dump", "{}"})
	}, dump)
	fixture.agent.Context = agents.Context{MaxTokens: 2000}
	fixture.limits.Turns = 10
	_, result := fixture.run("dump it")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	for _, m := range fixture.conversation() {
		if m.Role == agui.RoleTool && len(m.Content.Text()) != large+10 {
			t.Errorf("size of the result in the conversation = %d bytes, want %d", len(m.Content.Text()), large+10)
		}
	}
}

// TestSummaryIsMadeOnce: a summary is made once. A retry of the model call does not pay for it
// again, and later turns send it to the model.
func TestSummaryIsMadeOnce(t *testing.T) {
	t.Parallel()
	summaries, failed := 0, false
	fixture := setup(t, func(_ int, req *llm.Request) ([]llm.Chunk, error) {
		switch last := req.Messages[len(req.Messages)-1]; {
		case strings.Contains(req.Messages[0].Text(), "notes of an assistant"):
			if req.Model != "small" || len(req.Tools) > 0 || !strings.Contains(last.Text(), "user: user 0 ") {
				t.Errorf("summary: got a request of %q:\n%s\nwant one of small, without tools, about the first messages", req.Model, requestTexts(req))
			}
			summaries++
			return textAnswer(fmt.Sprintf("The story so far, part %d.", summaries))
		case !failed:
			failed = true
			return nil, &llm.Error{Code: llm.CodeUnavailable, Message: "try again"}
		case last.Role == llm.RoleTool:
			if !strings.Contains(req.Messages[1].Text(), "The story so far, part 1.") {
				t.Errorf("messages of the second turn: got\n%s\nwant the first summary", requestTexts(req))
			}
			return textAnswer("done")
		}
		if !strings.Contains(req.Messages[1].Text(), "The story so far, part 1.") || requestTokens(req) > 2000 {
			t.Errorf("request: got about %d tokens:\n%s\nwant at most 2000 with the first summary", requestTokens(req), requestTexts(req))
		}
		return callAnswer([3]string{"c", "add", `{"a":1,"b":2}`})
	}, addTool())
	fixture.agent.Context = agents.Context{MaxTokens: 2000, Policy: agents.ContextSummarize, Model: "test/small"}
	fixture.more = conversationOf(20)
	events, result := fixture.run("the very first question")
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	mustEqual(t, "number of summaries", summaries, 1)
	finished := events[len(events)-1].(*agui.RunFinished)
	if len(finished.Usage) != 1 || *finished.Usage[0].InputTokens != 20 {
		t.Errorf("usage: got %+v, want the usage of the summary and of one answer", finished.Usage)
	}
	if n := len(fixture.conversation()); n != 41+3 {
		t.Errorf("messages in the conversation: got %d, want 44", n)
	}
}

// TestSummaryGrows: when a summary does not suffice, the next one is made from it and the messages
// since.
func TestSummaryGrows(t *testing.T) {
	t.Parallel()
	summaries := 0
	fixture := setup(t, func(n int, req *llm.Request) ([]llm.Chunk, error) {
		if strings.Contains(req.Messages[0].Text(), "notes of an assistant") {
			summaries++
			material := req.Messages[1].Text()
			if summaries > 1 && (!strings.Contains(material, fmt.Sprintf("notes %d", summaries-1)) || strings.Contains(material, "user 0 ")) {
				t.Errorf("summary %d: got the material\n%.200s\nwant the notes before it, and no older messages", summaries, material)
			}
			return textAnswer(fmt.Sprintf("notes %d", summaries))
		}
		if requestTokens(req) > 2000 || !strings.Contains(requestTexts(req), "user 9 ") {
			t.Errorf("call %d: got a request of about %d tokens, want at most 2000 with the user's last message:\n%s", n, requestTokens(req), requestTexts(req))
		}
		if n > 10 {
			return textAnswer("done")
		}
		return callAnswer([3]string{fmt.Sprint("c", n), "write", fmt.Sprintf(`{"document":%q,"title":"t"}`, strings.Repeat("word ", 300))})
	}, documentTool())
	fixture.agent.Context = agents.Context{MaxTokens: 2000, Keep: agents.Keep{Last: 100}, Policy: agents.ContextSummarize}
	fixture.limits.Turns = 20
	fixture.more = conversationOf(10)
	_, result := fixture.run("the very first question")
	turns := int(fixture.calls.Load()) - summaries
	mustEqual(t, "outcome", result.Outcome, runs.OutcomeSuccess)
	if summaries < 2 {
		t.Errorf("number of summaries = %v, want at least %v", summaries, 2)
	}
	if summaries > turns/2 {
		t.Errorf("number of summaries = %v, want at most %v", summaries, turns/2)
	}
}
