package dispatch

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/runs"
)

// replayTime bounds how long Decide sends decisions again. The workflow itself waits for a second each time.
const replayTime = 10 * time.Second

// Decide sends decisions to the workflow of a thread by update, and returns a result for each. After a crash the
// workflow reads from the log, step by step, what its lost workflow task has done. An interrupt that it has not
// read yet is an unknown call to it. Decide then sends those decisions again, and only those, for which isOpen
// reports that the log has the interrupt, and that nobody has decided it. After replayTime it returns the last
// results. The errors are those of update and isOpen.
func Decide(decisions []runs.Decision, update func(runs.DecideRequest, *runs.DecideResult) error, isOpen func(runs.Decision) (bool, error)) (runs.DecideResult, error) {
	all := runs.DecideResult{Results: make([]runs.DecisionResult, len(decisions))}
	places := make([]int, len(decisions)) // of the decisions that are sent
	for n := range decisions {
		places[n] = n
	}
	for began := time.Now(); ; {
		sent := make([]runs.Decision, len(places))
		for i, n := range places {
			sent[i] = decisions[n]
		}
		var decided runs.DecideResult
		if err := update(runs.DecideRequest{Decisions: sent}, &decided); err != nil {
			return all, err
		}
		if len(decided.Results) != len(sent) {
			return all, fmt.Errorf("dispatch: the workflow has %d results for %d decisions", len(decided.Results), len(sent))
		}
		var unread []int
		for i, n := range places {
			all.Results[n] = decided.Results[i]
			if decided.Results[i].Error != runs.ErrorUnknownCall {
				continue
			}
			isUnread, err := isOpen(decisions[n])
			if err != nil {
				return all, err
			}
			if isUnread {
				unread = append(unread, n)
			}
		}
		if places = unread; len(places) == 0 || time.Since(began) > replayTime {
			return all, nil
		}
	}
}
