package agents

import "fmt"

// triggerMistakes returns the mistakes of the triggers.
func (d *Definition) triggerMistakes() []mistake {
	var found []mistake
	if len(d.Triggers) > maxTriggers {
		found = append(found, newMistake("triggers", "must be at most %d, not %d", maxTriggers, len(d.Triggers)))
	}
	for i := range d.Triggers {
		found = append(found, d.Triggers[i].mistakes(fmt.Sprintf("triggers[%d]", i))...)
	}
	return found
}
