package workflows_test

import (
	"encoding/json"

	"github.com/perdure/perdure/agents/pipeline"
)

// storedData is the data that an advance's record keeps.
type storedData struct {
	items         []json.RawMessage
	ends          []uint64
	finishedSteps map[string]pipeline.Done
	ended         pipeline.Ended
}

// storeAdvanced stores the data of an advance under the sequence of the record that the advance
// writes.
func (f *pipelineFixture) storeAdvanced(m pipeline.Advanced) {
	for path, record := range m.Position.Records {
		if record == 0 {
			m.Position.Records[path] = f.seq + 1
		}
	}
	data := &storedData{finishedSteps: m.Done, ended: pipeline.Ended{Undo: m.Position.Undo, Records: m.Position.Records}}
	if b := m.Action.Branches; b != nil {
		data.items, data.ends = b.Items, b.Ends
	}
	f.stored[f.seq+1] = data
}

// storedEntry returns the finished step at a path, as the log has it.
func (f *pipelineFixture) storedEntry(path string, record uint64) (pipeline.Done, error) {
	done, ok := f.stored[record].finishedSteps[path]
	if !ok {
		f.t.Errorf("record %d: got no entry for %s, want one", record, path)
	}
	return done, nil
}
