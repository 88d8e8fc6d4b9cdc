package pipeline

import "github.com/perdure/perdure/agents"

// Open are the names of the steps that are open at a cursor, the outermost first, as STEP_STARTED has said them.
func Open(d *agents.Definition, at Cursor) ([]string, error) {
	places, err := (&walk{d: d, at: at}).places()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range places {
		if !p.frame.Waiting { // it has finished, and begins when it is tried again
			names = append(names, p.name)
		}
	}
	return names, nil
}
