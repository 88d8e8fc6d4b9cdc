package snapshot

import "github.com/perdure/perdure/stream"

// addRepair adds the message that sends an invalid answer back. Only the model of the same step, or of
// the same agent, receives it.
func (f *folder) addRepair(res *stream.Result) {
	if res.Repair != nil {
		f.insert(Entry{Message: *res.Repair, Scope: res.Scope, Visibility: stream.VisibleToStep, Since: f.snap.Opened})
	}
}
