package agents

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// SourcePosition is the position of a document in a file, with the positions of its keys.
type SourcePosition struct {
	File string
	Line int // from 1
	keys map[string]*yaml.Node
}

func (p SourcePosition) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// ErrorAt returns an error about the value of a key, such as http.url, or about the whole document
// if it does not have that key.
func (p SourcePosition) ErrorAt(key, reason string) *DefinitionError {
	e := &DefinitionError{File: p.File, Line: p.Line, Key: key, Reason: reason}
	if node := p.keys[key]; node != nil {
		e.Line, e.Column = node.Line, node.Column
	}
	return e
}

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

// locate gives an error the position of its key.
func (p SourcePosition) locate(e *DefinitionError) {
	e.File = p.File
	e.Line, e.Column = p.find(e.Key)
}
