package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file builds the request of a remote agent's run: what the agent receives of the thread, and the
// headers with their secrets.

// remoteHeader returns the headers of the request with their secrets, which are looked up for each
// request, and a redactor for these.
func (a *Activities) remoteHeader(t turn) (http.Header, secrets.Redactor, error) {
	invalid := func(err error) (http.Header, secrets.Redactor, error) {
		return nil, secrets.Redactor{}, t.remoteFailure(&remote.Error{Kind: remote.KindInvalid, Message: "remote.headers: " + err.Error(), Err: err})
	}
	texts, name, err := secrets.ParseAll(t.definition.Remote.Headers)
	if err != nil {
		return invalid(fmt.Errorf("%s: %w", name, err))
	}
	// The secrets of the platform are not a tenant's: its agent could send them anywhere.
	if catalog.Referrer(t.in.Run.Tenant, t.in.Revision) != "" {
		if name := texts.SharedSecret(); name != "" {
			return invalid(fmt.Errorf("an agent of a tenant has its own secrets only: use ${tenantSecret:%s} instead of ${secret:%s}", name, name))
		}
	}
	caller := secrets.Caller{Tenant: t.in.Run.Tenant}
	if requester := t.conversation.Requester; requester != nil {
		caller.Subject = requester.Subject
	}
	filled, redactor, err := texts.FillFor(caller, a.Remotes.Secret)
	if err != nil {
		return invalid(err)
	}
	header := http.Header{}
	for name, value := range filled {
		header.Set(name, value)
	}
	return header, redactor, nil
}

// remoteInput is the request of a remote run.
type remoteInput struct {
	request agui.RunAgentInput
	// known are the thread's IDs of its messages and calls, and of the calls of its interrupts, by the
	// remote's. If the remote has used one ID in several runs, the last item counts.
	known map[string]string
	// answers are the decisions that are results of calls, unless the remote has results for them.
	answers []relay.Answer
	// release releases the memory of files; nil = none was taken.
	release func()
}

// remoteInput returns the request of a turn. It is the same for all attempts, as the conversation of a
// step is.
func (a *Activities) remoteInput(ctx context.Context, t turn) (in remoteInput, err error) {
	agent, forward := t.in.Agent, t.definition.Remote.Forward
	in.known = map[string]string{}
	run := runOf(t.in.Run)
	in.request = agui.RunAgentInput{
		ThreadID: remoteThread(t), RunID: run.Identify(relay.RunKind, t.in.ID),
		// Clients of the generation before 1.0 send these members always, and servers require them.
		State: json.RawMessage("{}"), Tools: []agui.Tool{}, Context: []agui.Context{}, ForwardedProps: json.RawMessage("{}"),
	}
	entries, err := a.audience(ctx, t.in, t.conversation)
	if err != nil {
		return in, err
	}
	// The agent has no credentials for the URLs of files, so it receives their bytes.
	if entries, in.release, err = a.loadFiles(ctx, run.Thread, entries); err != nil {
		return in, err
	}
	messages, changed := sentMessages(agent, prompt.WithoutUnavailable(entries))
	in.request.Messages = agui.RenameMessageIDs(messages, func(id string) string {
		original := cmp.Or(changed[id], remote.OriginalID(agent, id))
		in.known[original] = id
		return original
	})
	if forward.HasState() && len(t.conversation.State) > 0 {
		in.request.State = t.conversation.State
	}
	if openInterruptsRecord(t.conversation, in.request.ThreadID) == 0 { // otherwise calls may wait for the decisions
		in.request.Messages = answerCalls(in.request.Messages)
	}
	if t.conversation.Input == 0 {
		return in, nil
	}
	input, err := a.Log.Input(ctx, t.conversation.Input)
	if err != nil {
		return in, err
	}
	if forward.HasContext() {
		in.request.Context = append(in.request.Context, input.Input.Context...)
	}
	// Client tools end the run, so only the run's own agent may call them.
	if forward.HasTools() && t.in.Child == nil && !t.in.IsHidden() {
		in.request.Tools = append(in.request.Tools, input.Input.Tools...)
	}
	if in.request.ForwardedProps, err = forwardedProps(input.Input.ForwardedProps, forward.Props); err != nil {
		return in, err
	}
	return in, a.addDecisions(ctx, t, &in)
}

// remoteThread returns the remote's ID of the thread in which the agent works. A subagent, a branch and
// an isolated step have conversations of their own, and so threads of their own.
func remoteThread(t turn) string {
	thread := t.in.Run.Thread
	if child := t.in.Child; child != nil {
		thread += "\x00" + child.CallID + "\x00" + child.BranchPath
	}
	if step := t.in.PipelineStep; step != nil && step.Isolated {
		thread += "\x00" + step.Scope
	}
	return remote.ThreadID(t.in.Run.Tenant, t.in.Agent, thread)
}

// sentMessages returns the messages that a remote agent receives, and the IDs that the agent has changed
// since it has sent them. Activities are for people, and AG-UI's clients do not send them. The reasoning of
// another agent is of no use to this one, and its results without a call are refused by the API of a model.
func sentMessages(agent string, entries []snapshot.Entry) (messages []agui.Message, changed map[string]string) {
	messages, changed = []agui.Message{}, map[string]string{}
	isCalled := map[string]bool{}
	for _, e := range entries {
		isForeign := remote.OriginalID(agent, e.Message.ID) == e.Message.ID
		switch e.Message.Role {
		case agui.RoleActivity:
			continue
		case agui.RoleReasoning:
			if isForeign {
				continue
			}
		case agui.RoleTool:
			if isForeign && !isCalled[e.Message.ToolCallID] {
				continue
			}
		}
		for _, c := range e.Message.ToolCalls {
			isCalled[c.ID] = true
		}
		messages = append(messages, e.Message)
		if id := e.ProviderIDs[e.Message.ID]; id != "" && !isForeign {
			changed[e.Message.ID] = id
		}
	}
	return messages, changed
}

// callUnanswered is the result of a call that nobody has answered, such as one of the client's tools.
const callUnanswered = "The call has no result. The conversation went on without it."

// answerCalls adds a result to each call that has none, after the results of its message: agents fail if
// the model's API refuses a conversation with unanswered calls. The IDs of the results are the same in
// later runs.
func answerCalls(messages []agui.Message) (answered []agui.Message) {
	answered = []agui.Message{}
	hasResult := map[string]bool{}
	for _, m := range messages {
		hasResult[m.ToolCallID] = true
	}
	var missing []agui.Message // of the last message with calls
	for _, m := range messages {
		if m.Role != agui.RoleTool {
			answered, missing = append(answered, missing...), nil
		}
		answered = append(answered, m)
		for _, c := range m.ToolCalls {
			if !hasResult[c.ID] {
				missing = append(missing, agui.Message{
					ID: "unanswered_" + c.ID, Role: agui.RoleTool, ToolCallID: c.ID, Content: agui.TextContent(callUnanswered), SubagentRunID: m.SubagentRunID,
				})
			}
		}
	}
	return append(answered, missing...)
}

// forwardedProps returns the named members of the client's forwardedProps, as an object.
func forwardedProps(props json.RawMessage, names []string) (json.RawMessage, error) {
	members, selected := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(props) > 0 && len(names) > 0 {
		_ = json.Unmarshal(props, &members) // a value that is no object has no members
	}
	for _, name := range names {
		if value, ok := members[name]; ok {
			selected[name] = value
		}
	}
	raw, err := json.Marshal(selected)
	if err != nil {
		return nil, fmt.Errorf("activities: encode forwardedProps: %w", err)
	}
	return raw, nil
}
