package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file makes the system message of a model call.

// maxVisibleState bounds the state that a model is sent, in bytes of compact JSON. Of a larger
// state the model receives the size only.
const maxVisibleState = 64 << 10

// briefing returns the system message: the agent's instructions, the required output, the context
// that the client sent with the input, and the state if the definition makes it visible, in this
// order. "" = there is none of them.
func (a *Activities) briefing(ctx context.Context, d *agents.Definition, output *agents.Output, snap *snapshot.Snapshot) (string, error) {
	var sections []string
	if d.Instructions != "" {
		sections = append(sections, d.Instructions)
	}
	if output != nil {
		sections = append(sections, outputSection(output))
	}
	// The snapshot knows whether the input has a context, which saves reading the input.
	if snap.Context {
		in, err := a.Log.Input(ctx, snap.Input)
		if err != nil {
			return "", err
		}
		sections = append(sections, contextSection(in.Input.Context)...)
	}
	if d.State.Visible {
		sections = append(sections, stateSection(snap.State))
	}
	return strings.Join(sections, "\n\n"), nil
}

// contextSection returns the section with the context of the input; none if there is no context.
func contextSection(entries []agui.Context) []string {
	if len(entries) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("Context from the user's application:")
	for _, e := range entries {
		fmt.Fprintf(&b, "\n\n<context description=%q>\n%s\n</context>", e.Description, e.Value)
	}
	return []string{b.String()}
}

// stateSection returns the section with the state.
func stateSection(state json.RawMessage) string {
	const about = "The state that you share with the application, as JSON:"
	var b bytes.Buffer
	if err := json.Compact(&b, state); err != nil {
		// The log has JSON only, so this is a defect; the model call goes on without the state.
		b.Reset()
		b.WriteString("null")
	}
	if b.Len() > maxVisibleState {
		return fmt.Sprintf("The state that you share with the application has %d bytes, too many to show here.", b.Len())
	}
	return fmt.Sprintf("%s\n\n<state>\n%s\n</state>", about, b.String())
}
