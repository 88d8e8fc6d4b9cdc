package agents

import "fmt"

// mistake is a mistake without its position in a file.
type mistake struct {
	key    string // as in DefinitionError
	index  int    // the entry of a list; -1 = not a list
	reason string
}

func newMistake(key, format string, args ...any) mistake {
	return mistake{key: key, index: -1, reason: key + " " + fmt.Sprintf(format, args...)}
}
