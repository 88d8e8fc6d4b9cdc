package agents

// Op is one change of the state.
type Op struct {
	// Op is an operation of JSON Patch: add, remove, replace, move, copy or test. Empty = set the
	// value at the path, whether or not the path exists; a literal null removes it.
	Op string

	// Path and From are JSON pointers.
	Path string
	From string

	// Value is JSON; texts are templates.
	Value any
}
