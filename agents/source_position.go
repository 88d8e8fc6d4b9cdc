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

// locate gives an error the position of its key.
func (p SourcePosition) locate(e *DefinitionError) {
	e.File = p.File
	e.Line, e.Column = p.find(e.Key)
}
