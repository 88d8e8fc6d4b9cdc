package workflows_test

import (
	"encoding/json"

	"github.com/perdure/perdure/agents/pipeline"
)

// storedData is the data that an advance's record keeps.
type storedData struct {
	items []json.RawMessage
	ends  []uint64
	done  map[string]pipeline.Done
	ended pipeline.Ended
}

// keep stores the data of a move under the sequence of the record that the advance writes.
func (k *pipelineFixture) keep(m pipeline.Move) {
	for path, record := range m.Cursor.Records {
		if record == 0 {
			m.Cursor.Records[path] = k.seq + 1
		}
	}
	kept := &storedData{done: m.Done, ended: pipeline.Ended{Undo: m.Cursor.Undo, Records: m.Cursor.Records}}
	if b := m.Action.Branches; b != nil {
		kept.items, kept.ends = b.Items, b.Ends
	}
	k.kept[k.seq+1] = kept
}

func (k *pipelineFixture) recall(path string, record uint64) (pipeline.Done, error) {
	done, there := k.kept[record].done[path]
	if !there {
		k.t.Errorf("record %d has no entry for %s", record, path)
	}
	return done, nil
}
