package pipeline

import "github.com/perdure/perdure/agents"

// Open returns the names of the open steps at a cursor, the outermost first, as in STEP_STARTED. A
// run that ends with interrupts closes them, and the run that continues reopens them.
func Open(d *agents.Definition, at Cursor) ([]string, error) {
	places, err := (&interpreter{d: d, at: at}).openSteps()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range places {
		if !p.frame.Waiting { // its last try is closed, and the next one has not begun
			names = append(names, p.name)
		}
	}
	return names, nil
}
