package remote

import (
	"strconv"

	"github.com/perdure/perdure/agui"
)

// Protocol is the generation of AG-UI in which a request is written.
type Protocol string

// The protocols. The zero value is Auto.
const (
	// Auto declares agui.Version, which servers of the generation before 1.0 usually ignore.
	Auto Protocol = "auto"
	// Version1 declares agui.Version.
	Version1 Protocol = "1.0"
	// Version0 declares no version, and sends nothing that the generation before 1.0 does not have.
	Version0 Protocol = "0.x"
)

// Input returns in as the protocol requires, with a warning for everything that is lost. It does
// not change in.
func (p Protocol) Input(in agui.RunAgentInput) (agui.RunAgentInput, []agui.Warning) {
	if p != Version0 {
		in.ProtocolVersion = agui.Version
		return in, nil
	}
	d := &downgrade{}
	in.ProtocolVersion = ""
	in.Messages = mapped(in.Messages, d.message)
	in.Tools = mapped(in.Tools, func(_ int, t agui.Tool) agui.Tool { t.Metadata = nil; return t })
	in.Resume = mapped(in.Resume, func(_ int, r agui.ResumeEntry) agui.ResumeEntry { r.Metadata = nil; return r })
	return in, d.warnings
}

// mapped returns a new list of the results of f, or nil for nil.
func mapped[T any](list []T, f func(i int, entry T) T) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(list))
	for i, entry := range list {
		out[i] = f(i, entry)
	}
	return out
}

// downgrade rewrites messages for the generation before 1.0. Members that describe a message
// (metadata, attribution, types of encrypted values) are removed without a warning: that generation
// has no place for them, and no reader.
type downgrade struct{ warnings []agui.Warning }

// message rewrites the message with index i.
func (d *downgrade) message(i int, m agui.Message) agui.Message {
	m.Metadata, m.SubagentRunID, m.EncryptedValueType = nil, "", ""
	m.ToolCalls = mapped(m.ToolCalls, func(_ int, c agui.ToolCall) agui.ToolCall {
		c.Metadata, c.EncryptedValueType = nil, ""
		return c
	})
	if m.Content.IsAbsent() || m.Content.IsText() || m.Role != agui.RoleTool && m.Role != agui.RoleUser {
		return m
	}
	at := "/messages/" + strconv.Itoa(i) + "/content"
	if m.Role == agui.RoleTool {
		d.resultParts(at, &m)
		return m
	}
	var parts []agui.ContentPart
	for _, p := range m.Content.Parts() {
		if p.Source != nil && p.Source.Type == agui.SourceFile {
			d.warn(at, "a part with a file source was dropped: the remote is older than such parts")
			continue
		}
		p.ID = ""
		parts = append(parts, p)
	}
	m.Content = agui.PartsContent(parts)
	return m
}

// resultParts replaces the parts of a tool result by their text.
func (d *downgrade) resultParts(at string, m *agui.Message) {
	for _, p := range m.Content.Parts() {
		if p.Type != agui.PartText {
			d.warn(at, "a part of a tool result was dropped: the remote takes results as text only")
		}
	}
	m.Content = agui.TextContent(m.Content.Text())
}

// warn records a loss.
func (d *downgrade) warn(at, detail string) {
	d.warnings = append(d.warnings, agui.Warning{Pointer: at, Detail: detail})
}

// isNewer returns a warning about the version that a remote has declared, or "".
func isNewer(declared string) string {
	if declared == "" {
		return ""
	}
	major, minor, ok := agui.ParseVersion(declared)
	ourMajor, ourMinor, _ := agui.ParseVersion(agui.VersionLatest)
	switch {
	case !ok:
		return "cannot interpret the protocol version"
	case major > ourMajor || major == ourMajor && minor > ourMinor:
		return "protocol version " + declared + " is newer than " + agui.VersionLatest
	}
	return ""
}
