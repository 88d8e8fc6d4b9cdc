package dispatch

import (
	"time"

	"github.com/perdure/perdure/runs"
)

// replayTime bounds how long Decide sends decisions again. The workflow itself waits for a second each time.
const replayTime = 10 * time.Second

// Decide sends decisions to the workflow of a thread by update, and returns the result. After a crash the
// workflow reads from the log, step by step, what its lost workflow task has done. An interrupt that it has not
// read yet is an unknown call to it. Decide then sends the decisions again, if isOpen reports that the log has the
// interrupt of such a decision, and that nobody has decided it. After replayTime it returns the last result. The
// errors are those of update and isOpen.
func Decide(decisions []runs.Decision, update func(runs.DecideRequest, *runs.DecideResult) error, isOpen func(runs.Decision) (bool, error)) (runs.DecideResult, error) {
	for began := time.Now(); ; {
		var decided runs.DecideResult
		if err := update(runs.DecideRequest{Decisions: decisions}, &decided); err != nil {
			return decided, err
		}
		isUnread := false
		for n, result := range decided.Results {
			if result.Error != runs.ErrorUnknownCall || isUnread {
				continue
			}
			var err error
			if isUnread, err = isOpen(decisions[n]); err != nil {
				return decided, err
			}
		}
		if !isUnread || time.Since(began) > replayTime {
			return decided, nil
		}
	}
}
