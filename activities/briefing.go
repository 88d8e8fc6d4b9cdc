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

// maxVisibleState bounds the state that a model is shown, in bytes.
const maxVisibleState = 64 << 10

// briefing returns the system message: the agent's instructions, the required output, the context
// of the input, and the state if the model may see it.
func (a *Activities) briefing(ctx context.Context, d *agents.Definition, output *agents.Output, thread *snapshot.Snapshot) (string, error) {
	var sections []string
	if d.Instructions != "" {
		sections = append(sections, d.Instructions)
	}
	if output != nil {
		sections = append(sections, outputSection(output))
	}
	if thread.Context {
		in, err := a.Log.Input(ctx, thread.Input)
		if err != nil {
			return "", err
		}
		sections = append(sections, contextSection(in.Input.Context)...)
	}
	if d.State.Visible {
		sections = append(sections, stateSection(thread.State))
	}
	return strings.Join(sections, "\n\n"), nil
}

func contextSection(entries []agui.Context) []string {
	if len(entries) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("The application that the user works with tells you this:")
	for _, e := range entries {
		fmt.Fprintf(&b, "\n\n<context description=%q>\n%s\n</context>", e.Description, e.Value)
	}
	return []string{b.String()}
}

func stateSection(state json.RawMessage) string {
	const about = "The state that you share with the application, as JSON:"
	var b bytes.Buffer
	if err := json.Compact(&b, state); err != nil {
		b.Reset()
		b.WriteString("null") // the log has JSON only
	}
	if b.Len() > maxVisibleState {
		return fmt.Sprintf("The state that you share with the application has %d bytes, too many to be shown here.", b.Len())
	}
	return fmt.Sprintf("%s\n\n<state>\n%s\n</state>", about, b.String())
}
