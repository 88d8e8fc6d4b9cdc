package pipeline

import "github.com/perdure/perdure/agents"

// Open returns the names of the open steps at a cursor, the outermost first, as in STEP_STARTED.
func Open(d *agents.Definition, at Cursor) ([]string, error) {
	places, err := (&interpreter{d: d, at: at}).openSteps()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range places {
		if !p.frame.Waiting { // it has ended, and begins again at its next try
			names = append(names, p.name)
		}
	}
	return names, nil
}
