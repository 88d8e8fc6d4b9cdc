package agents

import "fmt"

// mistake is a mistake of a definition, without its position in a file. The checks of definitions
// return mistakes; Parse adds positions, Validate does not.
type mistake struct {
	key    string // as in DefinitionError
	index  int    // the entry of a list; -1 = not a list
	reason string
}

// newMistake returns a mistake about a key. The reason begins with the key.
func newMistake(key, format string, args ...any) mistake {
	return mistake{key: key, index: -1, reason: key + " " + fmt.Sprintf(format, args...)}
}
