package agents

// Located is a definition with the positions of its keys in the text from which it was parsed.
type Located struct {
	*Definition

	position SourcePosition
}

// UnknownNames is Definition.UnknownNames, with the position of each name.
func (l *Located) UnknownNames(known Names) []*DefinitionError {
	unknown := l.Definition.UnknownNames(known)
	for _, e := range unknown {
		l.position.locate(e)
	}
	return unknown
}

// ErrorAt returns an error about the value of a key, or about the nearest enclosing key that the
// text has.
func (l *Located) ErrorAt(key, reason string) *DefinitionError {
	e := &DefinitionError{Key: key, Reason: reason}
	l.position.locate(e)
	return e
}
