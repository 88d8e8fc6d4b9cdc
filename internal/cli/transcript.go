package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// maxQuotedChars is the maximal length of arguments, results and other quoted text, in characters.
const maxQuotedChars = 300

// transcript shows the events of a thread as text. The agent's text goes to answer, everything else
// to notes. It is used by one goroutine.
//
// The server retracts the text of a failed attempt by a MESSAGES_SNAPSHOT without it. On a terminal
// the transcript shows the text as it arrives, and reports the retraction. In a file or pipe it
// writes the text when the run has ended, without what was retracted.
type transcript struct {
	answer, notes *page
	failures      *page // for the failures of runs: notes, unless the notes are discarded
	// live shows text as it arrives.
	live bool
	// isQuiet shows the result of a run in place of its answer, if it has one.
	isQuiet bool
	// history also shows the messages of a snapshot that were not shown before: "tail" begins with
	// them.
	history bool

	texts map[string]*passage // of the current run, by message ID
	order []string            // keys of texts, in the order of their beginning
	seen  map[string]bool     // IDs of messages that were shown, in all runs
	// calls and subagents are those of the current run, by tool call ID and by subagent run ID.
	calls     map[string]*call
	subagents map[string]subagent
	last      client.Event // the last event of the last run
}

// passage is the text of a message that is being streamed.
type passage struct {
	strings.Builder
	owner     string // the subagent's run ID; "" = the agent
	reasoning bool
	shown     int // bytes already shown; used for subagents
}

// call is a tool call. Its arguments are streamed.
type call struct {
	name, owner string
	args        strings.Builder
	isRetracted bool // retracted before it was complete
}

// subagent is a subagent of the run. depth is its nesting depth, from 1.
type subagent struct {
	name  string
	depth int
}

// newTranscript returns a transcript. It is live if answer is a terminal.
func newTranscript(answer, notes *page) *transcript {
	t := &transcript{answer: answer, notes: notes, failures: notes, live: answer.terminal, seen: map[string]bool{}}
	t.reset()
	return t
}

// reset forgets the state of the run before.
func (t *transcript) reset() {
	t.texts, t.order = map[string]*passage{}, nil
	t.calls, t.subagents = map[string]*call{}, map[string]subagent{}
}

// show shows one event.
func (t *transcript) show(e client.Event) {
	switch e := e.Event.(type) {
	case *agui.RunStarted:
		t.reset()
		t.notes.writeLine("", dim, "run %s of thread %s", e.RunID, e.ThreadID)
		t.showTriggerEvent(e)
	case *agui.StepStarted:
		t.notes.writeLine(t.indent(e.SubagentRunID), dim, "· %s", e.StepName)
	case *agui.TextMessageStart:
		t.openMessage(e.MessageID, &passage{owner: e.SubagentRunID})
	case *agui.TextMessageContent:
		t.appendText(e.MessageID, e.Delta)
	case *agui.TextMessageEnd:
		t.closeMessage(e.MessageID)
	case *agui.ReasoningMessageStart:
		t.openMessage(e.MessageID, &passage{owner: e.SubagentRunID, reasoning: true})
	case *agui.ReasoningMessageContent:
		t.appendText(e.MessageID, e.Delta)
	case *agui.ReasoningMessageEnd:
		t.closeMessage(e.MessageID)
	case *agui.MessagesSnapshot:
		t.applySnapshot(e.Messages)
	case *agui.ActivitySnapshot:
		t.notes.writeLine(t.indent(e.SubagentRunID), dim, "%s %s", e.ActivityType, oneLine(string(e.Content), maxQuotedChars))
	case *agui.Custom:
		t.showCustom(e)
	default:
		t.showWork(e)
	}
	if e.Ends() {
		t.finishRun(e)
	}
}

// showTriggerEvent shows the event that started a run, if one did.
func (t *transcript) showTriggerEvent(e *agui.RunStarted) {
	var event *client.TriggerEvent
	if raw := e.Metadata["perdure.event"]; raw == nil || json.Unmarshal(raw, &event) != nil || event == nil {
		return
	}
	t.notes.writeLine("", dim, "started by the event %s", describeEvent(event))
}

// showWork shows events that are not text: calls, results and subagents.
func (t *transcript) showWork(e agui.Event) {
	switch e := e.(type) {
	case *agui.ToolCallStart:
		t.calls[e.ToolCallID] = &call{name: e.ToolCallName, owner: e.SubagentRunID}
		t.seen[e.ParentMessageID] = true
	case *agui.ToolCallArgs:
		if c := t.calls[e.ToolCallID]; c != nil {
			c.args.WriteString(e.Delta)
		}
	case *agui.ToolCallEnd:
		if c := t.calls[e.ToolCallID]; c != nil && !c.isRetracted {
			t.notes.writeLine(t.indent(c.owner), dim, "→ %s %s", c.name, oneLine(c.args.String(), maxQuotedChars))
		}
	case *agui.ToolCallResult:
		name := ""
		if c := t.calls[e.ToolCallID]; c != nil {
			name = c.name + " "
		}
		t.seen[e.MessageID] = true
		t.notes.writeLine(t.indent(e.SubagentRunID), dim, "← %s%s", name, oneLine(textOf(e.Content), maxQuotedChars))
	case *agui.SubagentStarted:
		depth := t.subagents[e.ParentSubagentRunID].depth + 1
		t.subagents[e.SubagentRunID] = subagent{e.Name, depth}
		t.notes.writeLine(t.indent(e.SubagentRunID), dim, "▸ %s", e.Name)
	case *agui.SubagentFinished:
		t.notes.writeLine(t.indent(e.SubagentRunID), dim, "◂ %s", t.subagents[e.SubagentRunID].name)
	case *agui.SubagentError:
		t.notes.writeLine(t.indent(e.SubagentRunID), alarm, "✗ %s: %s", t.subagents[e.SubagentRunID].name, oneLine(e.Message, maxQuotedChars))
	}
}

// indent returns the indentation of a subagent's lines; "" for the agent.
func (t *transcript) indent(owner string) string {
	return strings.Repeat("  ", t.subagents[owner].depth)
}

// openMessage begins a message, or continues one that an earlier attempt has begun.
func (t *transcript) openMessage(id string, p *passage) {
	if t.texts[id] == nil {
		t.texts[id] = p
		t.order = append(t.order, id)
	}
	t.seen[id] = true
	if p.owner == "" && !p.reasoning && t.live {
		t.notes.end()
	}
}

// appendText adds a delta to a message and shows it. The agent's text is shown at once. The text of
// subagents is shown in whole lines, because several of them write concurrently.
func (t *transcript) appendText(id, delta string) {
	p := t.texts[id]
	if p == nil {
		return
	}
	p.WriteString(delta)
	switch {
	case p.owner != "":
		t.flushLines(p)
	case p.reasoning:
		t.notes.write(delta, dim)
	case t.live:
		t.answer.write(delta, plain)
	}
}

// flushLines shows the complete lines of a subagent's text.
func (t *transcript) flushLines(p *passage) {
	t.flush(p, strings.LastIndexByte(p.String(), '\n')+1)
}

// flushAll shows all of a subagent's text, also an incomplete line.
func (t *transcript) flushAll(p *passage) { t.flush(p, p.Len()) }

// flush shows a subagent's text up to the byte end.
func (t *transcript) flush(p *passage, end int) {
	if end <= p.shown {
		return
	}
	text := p.String()[p.shown:end]
	p.shown = end
	s := plain
	if p.reasoning {
		s = dim
	}
	t.notes.writeLine(t.indent(p.owner)+"  ", s, "%s", strings.TrimSuffix(text, "\n"))
}

// closeMessage ends a message.
func (t *transcript) closeMessage(id string) {
	p := t.texts[id]
	switch {
	case p == nil:
	case p.owner != "":
		t.flushAll(p)
	case p.reasoning:
		t.notes.end()
	case t.live:
		t.answer.end()
	}
}

// applySnapshot removes the messages of this run that a MESSAGES_SNAPSHOT does not have: they were
// retracted. With history it shows the messages that are new.
func (t *transcript) applySnapshot(messages []agui.Message) {
	has := map[string]bool{}
	for _, m := range messages {
		has[m.ID] = true
		for _, c := range m.ToolCalls {
			has[c.ID] = true
		}
	}
	hasRetracted := false
	t.order = slices.DeleteFunc(t.order, func(id string) bool {
		if has[id] || t.texts[id].reasoning {
			return false
		}
		hasRetracted = hasRetracted || t.texts[id].Len() > 0
		delete(t.texts, id)
		return true
	})
	for id, c := range t.calls {
		c.isRetracted = c.isRetracted || !has[id]
	}
	if hasRetracted {
		t.notes.writeLine("", dim, "↺ the text above is retracted: its attempt failed, and a new attempt begins")
	}
	if t.history {
		t.showNewMessages(messages)
	}
}

// showNewMessages shows the messages that were not shown before. If one of the messages was shown,
// those before it are skipped.
func (t *transcript) showNewMessages(messages []agui.Message) {
	first := max(0, slices.IndexFunc(messages, func(m agui.Message) bool { return t.seen[m.ID] }))
	for i, m := range messages {
		if i >= first && !t.seen[m.ID] {
			t.showMessage(m)
		}
		t.seen[m.ID] = true
	}
}

// showMessage shows a complete message of the history.
func (t *transcript) showMessage(m agui.Message) {
	text := textOf(m.Content)
	switch m.Role {
	case agui.RoleUser:
		t.notes.writeLine("> ", strong, "%s", text)
	case agui.RoleAssistant:
		if text != "" {
			t.answer.writeLine("", plain, "%s", text)
		}
		for _, c := range m.ToolCalls {
			t.notes.writeLine("", dim, "→ %s %s", c.Name, oneLine(c.Arguments, maxQuotedChars))
		}
	case agui.RoleTool:
		t.notes.writeLine("", dim, "← %s", oneLine(text, maxQuotedChars))
	case agui.RoleReasoning:
		t.notes.writeLine("", dim, "%s", text)
	}
}

// textOf returns the text of a message's content. Parts that are not text are replaced by their
// types in brackets.
func textOf(c agui.Content) string {
	if c.IsText() || c.IsAbsent() {
		return c.Text()
	}
	var list []string
	for _, p := range c.Parts() {
		if p.Type == agui.PartText {
			list = append(list, p.Text)
		} else {
			list = append(list, fmt.Sprintf("[%s]", p.Type))
		}
	}
	return strings.Join(list, "\n")
}

// showCustom shows the CUSTOM events of Perdure; it ignores those of others.
func (t *transcript) showCustom(e *agui.Custom) {
	switch e.Name {
	case "perdure.approval":
		var i agui.Interrupt
		if i.UnmarshalJSON(e.Value) == nil {
			t.showInterrupt(i)
		}
	case "perdure.toolUnavailable":
		var unavailable struct{ Reason, Until string }
		if json.Unmarshal(e.Value, &unavailable) == nil {
			t.notes.writeLine("", strong, "… waits for a worker until %s: %s", oneLine(unavailable.Until, maxQuotedChars), oneLine(unavailable.Reason, maxQuotedChars))
		}
	case "perdure.handoff":
		var h struct{ From, To string }
		if json.Unmarshal(e.Value, &h) == nil {
			t.notes.writeLine("", strong, "⇒ %s hands over to %s", oneLine(h.From, maxQuotedChars), oneLine(h.To, maxQuotedChars))
		}
	case "perdure.answerIncomplete":
		var d struct{ Reason string }
		if json.Unmarshal(e.Value, &d) == nil {
			t.notes.writeLine("", strong, "! the answer is incomplete: %s", oneLine(d.Reason, maxQuotedChars))
		}
	case "perdure.contentDropped":
		var d struct {
			Part                             int
			Type, MimeType, Reason, Provider string
		}
		if json.Unmarshal(e.Value, &d) == nil {
			t.notes.writeLine("", strong, "! %s does not receive part %d, %s %s: %s",
				oneLine(d.Provider, maxQuotedChars), d.Part, oneLine(d.Type, maxQuotedChars), oneLine(d.MimeType, maxQuotedChars), oneLine(d.Reason, maxQuotedChars))
		}
	}
}

// showInterrupt shows an open interrupt.
func (t *transcript) showInterrupt(i agui.Interrupt) {
	if w := client.WaitOf(i); w != nil {
		t.showWait(t.notes, w)
		return
	}
	what := oneLine(i.Message, maxQuotedChars)
	if c := t.calls[i.ToolCallID]; c != nil {
		what += " " + c.name + " " + oneLine(c.args.String(), maxQuotedChars)
	}
	t.notes.writeLine("", strong, "? %s waits for a decision: %s", i.ID, what)
	if i.ExpiresAt != "" {
		t.notes.writeLine("  ", dim, "until %s", oneLine(i.ExpiresAt, maxQuotedChars))
	}
}

// showWait shows what a run waits for, and until when.
func (t *transcript) showWait(to *page, w *client.Wait) {
	to.writeLine("", strong, "… %s %s", w.ID, oneLine(describeWait(w), maxQuotedChars))
}

// finishRun shows the end of a run, and the text that was held back for a file.
func (t *transcript) finishRun(e client.Event) {
	t.last = e
	result := e.Result()
	if !t.live && (result == nil || !t.isQuiet) {
		t.writeAnswer()
	}
	t.answer.end()
	defer t.writeResult(result)
	switch e := e.Event.(type) {
	case *agui.RunError:
		t.failures.writeLine("", alarm, "the run failed: %s", failureText(e))
	case *agui.RunFinished:
		if failed := earlierFailure(e); failed != nil {
			t.failures.writeLine("", alarm, "the run failed: %s", failureText(failed))
			return
		}
		t.showOutcome(e)
	}
}

// earlierFailure returns the error of a run that had failed before this client connected; nil = it
// did not fail. Such a run is sent as RUN_FINISHED, with the error in its metadata.
func earlierFailure(e *agui.RunFinished) *agui.RunError {
	var runError struct{ Code, Message string }
	if raw, ok := e.Metadata["perdure.error"]; !ok || json.Unmarshal(raw, &runError) != nil {
		return nil
	}
	return &agui.RunError{Code: runError.Code, Message: runError.Message}
}

// failureText describes the error of a run.
func failureText(e *agui.RunError) string {
	if e.Code == "" {
		return oneLine(e.Message, maxQuotedChars)
	}
	return oneLine(e.Code+": "+e.Message, maxQuotedChars)
}

// showOutcome shows the usage and the outcome of a run.
func (t *transcript) showOutcome(e *agui.RunFinished) {
	for _, u := range e.Usage {
		if u.InputTokens != nil && u.OutputTokens != nil {
			model := cmp.Or(u.Model, u.Provider, "usage") // remote agents may report neither
			t.notes.writeLine("", dim, "%s: %d tokens in, %d out", oneLine(model, maxQuotedChars), *u.InputTokens, *u.OutputTokens)
		}
	}
	if e.Outcome == nil {
		return
	}
	switch e.Outcome.Type {
	case agui.OutcomeCancelled:
		t.notes.writeLine("", alarm, "the run was cancelled")
	case agui.OutcomeInterrupt:
		for _, i := range e.Outcome.Interrupts {
			if w := client.WaitOf(i); w != nil {
				t.showWait(t.failures, w)
			} else {
				t.showInterrupt(i)
			}
		}
	case agui.OutcomeSuccess:
		if n := len(e.Outcome.PendingToolCallIDs); n > 0 {
			t.notes.writeLine("", strong, "? %d tool calls wait for their client", n)
		}
	}
}

// writeAnswer writes the agent's text of the whole run.
func (t *transcript) writeAnswer() {
	for _, id := range t.order {
		p := t.texts[id]
		if p.owner == "" && !p.reasoning && p.Len() > 0 {
			t.answer.write(p.String(), plain)
			t.answer.end()
		}
	}
}

// writeResult writes the result of a run as indented JSON; nil = nothing. It omits a result that is the
// last answer as the page shows it.
func (t *transcript) writeResult(result json.RawMessage) {
	var b bytes.Buffer
	if result == nil || !t.isQuiet && isSameJSON(t.lastAnswer(), result) || json.Indent(&b, result, "", "  ") != nil {
		return
	}
	text := b.Bytes()
	if t.answer.terminal {
		text = jsonOnTerminal(text)
	}
	t.notes.end()
	t.answer.write(string(text), plain)
	t.answer.end()
}

// lastAnswer returns the agent's last text; "" = it has written none.
func (t *transcript) lastAnswer() string {
	for _, id := range slices.Backward(t.order) {
		if p := t.texts[id]; p.owner == "" && !p.reasoning && p.Len() > 0 {
			return p.String()
		}
	}
	return ""
}

// isSameJSON reports whether a text is JSON with the same value as another one.
func isSameJSON(text string, other json.RawMessage) bool {
	var a, b bytes.Buffer
	return json.Compact(&a, []byte(text)) == nil && json.Compact(&b, other) == nil && bytes.Equal(a.Bytes(), b.Bytes())
}

// outcomeError returns the error for the exit code of a command about one run; nil = the run
// succeeded.
func outcomeError(e client.Event) error {
	switch e := e.Event.(type) {
	case *agui.RunError:
		if e.Code == "cancelled" {
			return exitWith(exitCancelled)
		}
		return exitWith(exitFailed)
	case *agui.RunFinished:
		switch {
		case earlierFailure(e) != nil:
			return exitWith(exitFailed)
		case e.Outcome == nil:
		case e.Outcome.Type == agui.OutcomeCancelled:
			return exitWith(exitCancelled)
		case e.Outcome.Type == agui.OutcomeInterrupt, len(e.Outcome.PendingToolCallIDs) > 0:
			return exitWith(exitWaits)
		}
	}
	return nil
}
