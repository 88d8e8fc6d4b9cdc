package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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

// AttributeToTools returns the error of ParseLocated with another place for a misspelled entry of
// the list of tools: steps that have the right name are not mistakes, and the entry is. That is so
// if a step's tool is known, and the only similar entry is not.
func (l *Located) AttributeToTools(err error, known Names) error {
	list, isList := err.(interface{ Unwrap() []error })
	if !isList {
		return err
	}
	errs := list.Unwrap()
	for _, unknown := range l.UnknownNames(known) {
		if !strings.HasPrefix(unknown.Key, "tools[") {
			continue
		}
		isConsequence := func(err error) bool { return l.isConsequence(err, unknown, known) }
		if slices.ContainsFunc(errs, isConsequence) {
			errs = append([]error{unknown}, slices.DeleteFunc(slices.Clone(errs), isConsequence)...)
		}
	}
	return errors.Join(errs...)
}

// isConsequence reports whether an error says that a step's tool is not in the list of tools only
// because an unknown entry of the list is misspelled.
func (l *Located) isConsequence(err error, entry *DefinitionError, known Names) bool {
	var mistake *DefinitionError
	if !errors.As(err, &mistake) {
		return false
	}
	node := l.position.keys[mistake.Key]
	if node == nil || !slices.Contains(known.Tools, node.Value) {
		return false
	}
	similar := slices.IndexFunc(l.Tools, func(tool string) bool {
		did := suggestion(node.Value, []string{tool})
		return did != "" && strings.HasSuffix(mistake.Reason, notOfAgent+did)
	})
	return similar >= 0 && entry.Key == fmt.Sprintf("tools[%d]", similar)
}

// ErrorAt returns an error about the value of a key, or about the nearest enclosing key that the
// text has.
func (l *Located) ErrorAt(key, reason string) *DefinitionError {
	e := &DefinitionError{Key: key, Reason: reason}
	l.position.locate(e)
	return e
}
