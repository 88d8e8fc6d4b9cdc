package runs

// Ref names a run and its address.
type Ref struct {
	Tenant string `json:"tenant"`
	Thread string `json:"thread"`
	ID     string `json:"run"`
}

// With returns another run of the same thread.
func (r Ref) With(id string) Ref {
	r.ID = id
	return r
}

// LogAttrs returns the attributes of a log line about the run, and more of them. An empty agent is unknown.
func (r Ref) LogAttrs(agent string, more ...any) []any {
	attrs := []any{"tenant", r.Tenant, "thread", r.Thread, "run", r.ID}
	if agent != "" {
		attrs = append(attrs, "agent", agent)
	}
	return append(attrs, more...)
}
