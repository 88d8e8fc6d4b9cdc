package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/perdure/perdure/activities/relay"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/agui/remote"
	"github.com/perdure/perdure/internal/secrets"
	"github.com/perdure/perdure/runs"
	"github.com/perdure/perdure/stream"
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
	ids     []string // the thread's IDs of its messages and calls
	// answers are the decisions that are results of calls, unless the remote has results for them.
	answers []relay.Answer
}

// remoteInput returns the request of a turn. It is the same for all attempts, as the conversation of a
// step is.
func (a *Activities) remoteInput(ctx context.Context, t turn) (in remoteInput, err error) {
	agent, forward := t.in.Agent, t.definition.Remote.Forward
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
	last := &stream.RemoteRun{}
	if seq := t.conversation.Remotes[in.request.ThreadID]; seq > 0 {
		if last, err = a.Log.RemoteRun(ctx, seq); err != nil {
			return in, err
		}
	}
	in.request.Messages, in.ids = messagesFor(agent, entries, last)
	if forward.HasState() && len(t.conversation.State) > 0 {
		in.request.State = t.conversation.State
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
	return in, a.addDecisions(ctx, t, &in, last)
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

// messagesFor returns the messages that a remote agent receives, with its IDs, and the thread's IDs of
// all of them. They begin with what the remote has told at the end of its last run, unless messages up
// to there have changed: a remote that compares messages by their IDs takes others for new ones.
func messagesFor(agent string, entries []snapshot.Entry, last *stream.RemoteRun) (messages []agui.Message, ids []string) {
	all := agui.RenameMessageIDs(sentMessages(agent, entries), func(id string) string {
		ids = append(ids, id)
		return remote.OriginalID(agent, id)
	})
	if len(last.Messages) == 0 || last.Of.Count > len(entries) || prefixOf(entries[:last.Of.Count]) != last.Of {
		return all, ids
	}
	rest := agui.RenameMessageIDs(sentMessages(agent, entries[last.Of.Count:]), func(id string) string { return remote.OriginalID(agent, id) })
	return slices.Concat(last.Messages, rest), ids
}

// prefixOf returns the prefix of a conversation that has these entries.
func prefixOf(entries []snapshot.Entry) stream.Prefix {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.Message.ID)
	}
	sum := sha256.Sum256([]byte(strings.Join(ids, "\x00")))
	return stream.Prefix{Count: len(entries), Digest: hex.EncodeToString(sum[:16])}
}

// sentMessages returns the messages that a remote agent receives. Activities are for people, and AG-UI's
// clients do not send them. The reasoning of another agent is of no use to this one.
func sentMessages(agent string, entries []snapshot.Entry) []agui.Message {
	messages := []agui.Message{}
	for _, e := range entries {
		isForeign := e.Message.Role == agui.RoleReasoning && remote.OriginalID(agent, e.Message.ID) == e.Message.ID
		if e.Message.Role != agui.RoleActivity && !isForeign {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// noteRun returns what the done record keeps of a run for the agent's next run. It adds the interrupts of
// the run to the answer. messages are those of the run.
func (a *Activities) noteRun(ctx context.Context, t turn, relayed *relay.Relay, messages []agui.Message, answer *runs.ModelAnswer) (*stream.RemoteRun, error) {
	run := &stream.RemoteRun{Thread: remoteThread(t)}
	if answer.Outcome != runs.OutcomeSuccess {
		return run, nil
	}
	run.Asked = noteInterrupts(t, relayed, answer)
	// A child has a thread of its own, which ends with it unless people are asked.
	if run.Messages = relayed.LastSnapshot(); len(run.Messages) == 0 || t.in.Child != nil && len(run.Asked) == 0 {
		run.Messages = nil
		return run, nil
	}
	entries, err := a.audience(ctx, t.in, t.conversation)
	if err != nil {
		return run, err
	}
	for _, m := range messages {
		entries = append(entries, snapshot.Entry{Message: m})
	}
	run.Of = prefixOf(entries)
	return run, nil
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
