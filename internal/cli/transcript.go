package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/client"
)

// longest is the most characters of arguments, results and the like.
const longest = 300

// transcript shows the events of a thread to a person.
//
// The server retracts what a failed attempt has written. On a terminal the transcript reports the
// retraction. A file or pipe gets the text when the run has ended, without what was retracted.
type transcript struct {
	answer, notes *page
	// live shows text as it arrives.
	live bool
	// history shows messages of a snapshot that were not shown before.
	history bool

	texts     map[string]*passage // of this run, by message
	order     []string            // of texts
	seen      map[string]bool     // messages, by id
	calls     map[string]*call
	subagents map[string]subagent
	last      client.Event // the last event of the last run
}

// passage is the text of a message.
type passage struct {
	strings.Builder
	owner     string // the subagent's run; "" = the agent
	reasoning bool
	shown     int // bytes that are shown, of a subagent
}

// call is a tool call.
type call struct {
	name, owner string
	args        strings.Builder
	gone        bool // retracted before it was complete
}

// subagent is a subagent of the run, and how deep it is nested.
type subagent struct {
	name  string
	depth int
}

func newTranscript(answer, notes *page) *transcript {
	t := &transcript{answer: answer, notes: notes, live: answer.terminal, seen: map[string]bool{}}
	t.begin()
	return t
}

func (t *transcript) begin() {
	t.texts, t.order = map[string]*passage{}, nil
	t.calls, t.subagents = map[string]*call{}, map[string]subagent{}
}

// show shows one event.
func (t *transcript) show(e client.Event) {
	switch e := e.Event.(type) {
	case *agui.RunStarted:
		t.begin()
		t.notes.line("", dim, "run %s of thread %s", e.RunID, e.ThreadID)
	case *agui.StepStarted:
		t.notes.line(t.indent(e.SubagentRunID), dim, "· %s", e.StepName)
	case *agui.TextMessageStart:
		t.open(e.MessageID, &passage{owner: e.SubagentRunID})
	case *agui.TextMessageContent:
		t.say(e.MessageID, e.Delta)
	case *agui.TextMessageEnd:
		t.close(e.MessageID)
	case *agui.ReasoningMessageStart:
		t.open(e.MessageID, &passage{owner: e.SubagentRunID, reasoning: true})
	case *agui.ReasoningMessageContent:
		t.say(e.MessageID, e.Delta)
	case *agui.ReasoningMessageEnd:
		t.close(e.MessageID)
	case *agui.MessagesSnapshot:
		t.snapshot(e.Messages)
	case *agui.ActivitySnapshot:
		t.notes.line(t.indent(e.SubagentRunID), dim, "%s %s", e.ActivityType, line(string(e.Content), longest))
	case *agui.Custom:
		t.custom(e)
	default:
		t.showWork(e)
	}
	if e.Ends() {
		t.finish(e)
	}
}

// showWork shows events that are not text: steps, calls, results, subagents.
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
		if c := t.calls[e.ToolCallID]; c != nil && !c.gone {
			t.notes.line(t.indent(c.owner), dim, "→ %s %s", c.name, line(c.args.String(), longest))
		}
	case *agui.ToolCallResult:
		name := ""
		if c := t.calls[e.ToolCallID]; c != nil {
			name = c.name + " "
		}
		t.seen[e.MessageID] = true
		t.notes.line(t.indent(e.SubagentRunID), dim, "← %s%s", name, line(textOf(e.Content), longest))
	case *agui.SubagentStarted:
		depth := t.subagents[e.ParentSubagentRunID].depth + 1
		t.subagents[e.SubagentRunID] = subagent{e.Name, depth}
		t.notes.line(t.indent(e.SubagentRunID), dim, "▸ %s", e.Name)
	case *agui.SubagentFinished:
		t.notes.line(t.indent(e.SubagentRunID), dim, "◂ %s", t.subagents[e.SubagentRunID].name)
	case *agui.SubagentError:
		t.notes.line(t.indent(e.SubagentRunID), alarm, "✗ %s: %s", t.subagents[e.SubagentRunID].name, line(e.Message, longest))
	}
}

// indent returns the indentation of a subagent's lines.
func (t *transcript) indent(owner string) string {
	return strings.Repeat("  ", t.subagents[owner].depth)
}

// open begins a message, or continues one.
func (t *transcript) open(id string, p *passage) {
	if t.texts[id] == nil {
		t.texts[id] = p
		t.order = append(t.order, id)
	}
	t.seen[id] = true
	if p.owner == "" && !p.reasoning && t.live {
		t.notes.end()
	}
}

// say shows a part of a message: the agent's own at once, those of subagents, which may write
// concurrently, by whole lines.
func (t *transcript) say(id, delta string) {
	p := t.texts[id]
	if p == nil {
		return
	}
	p.WriteString(delta)
	switch {
	case p.owner != "":
		t.sayLines(p, false)
	case p.reasoning:
		t.notes.write(delta, dim)
	case t.live:
		t.answer.write(delta, plain)
	}
}

func (t *transcript) sayLines(p *passage, all bool) {
	rest := p.String()[p.shown:]
	end := strings.LastIndexByte(rest, '\n') + 1
	if all {
		end = len(rest)
	}
	if end == 0 {
		return
	}
	p.shown += end
	s := plain
	if p.reasoning {
		s = dim
	}
	t.notes.line(t.indent(p.owner)+"  ", s, "%s", strings.TrimSuffix(rest[:end], "\n"))
}

func (t *transcript) close(id string) {
	p := t.texts[id]
	switch {
	case p == nil:
	case p.owner != "":
		t.sayLines(p, true)
	case p.reasoning:
		t.notes.end()
	case t.live:
		t.answer.end()
	}
}

// snapshot retracts the messages of this run that the list lacks, and shows new ones.
func (t *transcript) snapshot(messages []agui.Message) {
	has := map[string]bool{}
	for _, m := range messages {
		has[m.ID] = true
		for _, c := range m.ToolCalls {
			has[c.ID] = true
		}
	}
	withdrawn := false
	t.order = slices.DeleteFunc(t.order, func(id string) bool {
		if has[id] || t.texts[id].reasoning {
			return false
		}
		withdrawn = withdrawn || t.texts[id].Len() > 0
		delete(t.texts, id)
		return true
	})
	for id, c := range t.calls {
		c.gone = c.gone || !has[id]
	}
	if withdrawn {
		t.notes.line("", dim, "↺ what was being said is taken back: its attempt has died, another one begins")
	}
	if t.history {
		t.recallFrom(messages)
	}
}

// recallFrom shows messages that were not shown before, if they follow one that was.
func (t *transcript) recallFrom(messages []agui.Message) {
	first := max(0, slices.IndexFunc(messages, func(m agui.Message) bool { return t.seen[m.ID] }))
	for i, m := range messages {
		if i >= first && !t.seen[m.ID] {
			t.recall(m)
		}
		t.seen[m.ID] = true
	}
}

// recall shows a complete message.
func (t *transcript) recall(m agui.Message) {
	text := textOf(m.Content)
	switch m.Role {
	case agui.RoleUser:
		t.notes.line("> ", strong, "%s", text)
	case agui.RoleAssistant:
		if text != "" {
			t.answer.line("", plain, "%s", text)
		}
		for _, c := range m.ToolCalls {
			t.notes.line("", dim, "→ %s %s", c.Name, line(c.Arguments, longest))
		}
	case agui.RoleTool:
		t.notes.line("", dim, "← %s", line(text, longest))
	case agui.RoleReasoning:
		t.notes.line("", dim, "%s", text)
	}
}

// textOf returns the text of a content, with the kinds of parts that are not text.
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

func (t *transcript) custom(e *agui.Custom) {
	switch e.Name {
	case "perdure.approval":
		var i agui.Interrupt
		if i.UnmarshalJSON(e.Value) == nil {
			t.question(i)
		}
	case "perdure.toolUnavailable":
		var lacks struct{ Reason, Until string }
		if json.Unmarshal(e.Value, &lacks) == nil {
			t.notes.line("", strong, "… waits for a worker until %s: %s", line(lacks.Until, longest), line(lacks.Reason, longest))
		}
	case "perdure.handoff":
		var h struct{ From, To string }
		if json.Unmarshal(e.Value, &h) == nil {
			t.notes.line("", strong, "⇒ %s has handed over to %s", line(h.From, longest), line(h.To, longest))
		}
	case "perdure.contentDropped":
		var d struct {
			Part                             int
			Type, MimeType, Reason, Provider string
		}
		if json.Unmarshal(e.Value, &d) == nil {
			t.notes.line("", strong, "! %s does not read part %d, %s %s: %s", line(d.Provider, longest), d.Part, line(d.Type, longest), line(d.MimeType, longest), line(d.Reason, longest))
		}
	}
}

// question shows an interrupt.
func (t *transcript) question(i agui.Interrupt) {
	what := line(i.Message, longest)
	if c := t.calls[i.ToolCallID]; c != nil {
		what += " " + c.name + " " + line(c.args.String(), longest)
	}
	t.notes.line("", strong, "? %s waits for a decision: %s", i.ID, what)
	if i.ExpiresAt != "" {
		t.notes.line("  ", dim, "until %s", line(i.ExpiresAt, longest))
	}
}

// finish shows how a run has ended.
func (t *transcript) finish(e client.Event) {
	t.last = e
	if !t.live {
		t.writeAnswer()
	}
	t.answer.end()
	switch e := e.Event.(type) {
	case *agui.RunError:
		t.notes.line("", alarm, "the run failed: %s", failure(e))
	case *agui.RunFinished:
		if failed := failedBefore(e); failed != nil {
			t.notes.line("", alarm, "the run failed: %s", failure(failed))
			return
		}
		t.finished(e)
	}
}

// failedBefore returns the error of a run that had failed before the client came, which the server
// reports in the metadata; nil = none.
func failedBefore(e *agui.RunFinished) *agui.RunError {
	var how struct{ Code, Message string }
	if raw, ok := e.Metadata["perdure.error"]; !ok || json.Unmarshal(raw, &how) != nil {
		return nil
	}
	return &agui.RunError{Code: how.Code, Message: how.Message}
}

func failure(e *agui.RunError) string {
	if e.Code == "" {
		return line(e.Message, longest)
	}
	return line(e.Code+": "+e.Message, longest)
}

func (t *transcript) finished(e *agui.RunFinished) {
	for _, u := range e.Usage {
		if u.InputTokens != nil && u.OutputTokens != nil {
			t.notes.line("", dim, "%s: %d tokens in, %d out", line(u.Model, longest), *u.InputTokens, *u.OutputTokens)
		}
	}
	if e.Outcome == nil {
		return
	}
	switch e.Outcome.Type {
	case agui.OutcomeCancelled:
		t.notes.line("", alarm, "the run was cancelled")
	case agui.OutcomeInterrupt:
		for _, i := range e.Outcome.Interrupts {
			t.question(i)
		}
	case agui.OutcomeSuccess:
		if n := len(e.Outcome.PendingToolCallIDs); n > 0 {
			t.notes.line("", strong, "? %d tool calls wait for their client", n)
		}
	}
}

// writeAnswer writes the answer of the run that has ended.
func (t *transcript) writeAnswer() {
	for _, id := range t.order {
		p := t.texts[id]
		if p.owner == "" && !p.reasoning && p.Len() > 0 {
			t.answer.write(p.String(), plain)
			t.answer.end()
		}
	}
}

// outcome returns the error with which a command about one run ends: nil if the run succeeded.
func outcome(e client.Event) error {
	switch e := e.Event.(type) {
	case *agui.RunError:
		if e.Code == "cancelled" {
			return exitWith(exitCancelled)
		}
		return exitWith(exitFailed)
	case *agui.RunFinished:
		switch {
		case failedBefore(e) != nil:
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
