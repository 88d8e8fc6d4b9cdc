package agents

import "net/url"

// RemoteHost returns the host of the server of a remote agent, with a port that is not the default; "" =
// the agent is not remote.
func (d *Definition) RemoteHost() string {
	if d.Remote == nil {
		return ""
	}
	u, err := url.Parse(d.Remote.URL)
	if err != nil { // a definition that was checked has a valid URL
		return ""
	}
	return u.Host
}

// AcceptsCommands reports whether clients may answer interrupts in forwardedProps.command. Front ends of
// LangGraph and Mastra do so, and a remote agent may be one of these.
func (d *Definition) AcceptsCommands() bool { return d.LegacyInterrupts || d.Remote != nil }

// remoteMistakes returns the mistakes in Remote, and the keys that exclude it.
func (d *Definition) remoteMistakes() []mistake {
	if d.Remote == nil {
		return nil
	}
	var found []mistake
	for _, other := range []struct {
		key   string
		given bool
	}{
		{"model", d.Model != ""}, {"fallback", len(d.Fallback.On) > 0}, {"steps", len(d.Steps) > 0}, {"workflow", d.Workflow != ""},
		{"instructions", d.Instructions != ""}, {"reasoning", d.Reasoning != Reasoning{}}, {"tools", len(d.Tools) > 0},
	} {
		if other.given {
			found = append(found, newMistake(other.key, "must not be combined with remote: the server of a remote agent decides about it; remove one of them"))
		}
	}
	return append(found, d.Remote.mistakes()...)
}
