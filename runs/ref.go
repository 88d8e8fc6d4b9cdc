package runs

// Ref refers to a run by tenant, thread and run ID.
type Ref struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	ID     string `json:"run"`
}

// With returns the reference to another run of the thread.
func (r Ref) With(id string) Ref {
	r.ID = id
	return r
}

// LogAttrs returns the attributes of a log line about the run, followed by more. An empty agent is
// left out.
func (r Ref) LogAttrs(agent string, more ...any) []any {
	attrs := []any{"tenant", r.Tenant, "thread", r.Thread, "run", r.ID}
	if agent != "" {
		attrs = append(attrs, "agent", agent)
	}
	return append(attrs, more...)
}
