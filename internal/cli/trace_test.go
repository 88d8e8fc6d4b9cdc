package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/client"
)

// TestTraceIsTree: the tree has each span with its times, and below it the failed attempts and the
// error.
func TestTraceIsTree(t *testing.T) {
	t.Parallel()
	var trace client.Trace
	if err := json.Unmarshal([]byte(`{"startedAt":"2026-11-21T09:30:00Z","truncated":true,"spans":[
		{"id":"1","kind":"run","name":"clerk","status":"running","startedAt":"2026-11-21T09:30:00Z"},
		{"id":"2","parentId":"1","kind":"turn","name":"turn 1","status":"finished","startedAt":"2026-11-21T09:30:00Z","endedAt":"2026-11-21T09:30:12.34Z"},
		{"id":"3","parentId":"2","kind":"model","name":"m","status":"finished","startedAt":"2026-11-21T09:30:00Z","endedAt":"2026-11-21T09:30:01Z",
		 "usage":{"inputTokens":3,"outputTokens":4},"attempts":[
			{"number":1,"status":"failed","startedAt":"2026-11-21T09:30:00Z","endedAt":"2026-11-21T09:30:00.5Z","error":{"code":"worker_lost"},"withdrawn":{"text":"half\na thought"}},
			{"number":2,"status":"finished","startedAt":"2026-11-21T09:30:00.5Z","endedAt":"2026-11-21T09:30:01Z"}]},
		{"id":"4","parentId":"2","kind":"tool","name":"pay","status":"failed","startedAt":"2026-11-21T09:30:01Z","endedAt":"2026-11-21T09:30:12.34Z",
		 "error":{"code":"tool_failed","message":"no money","hint":"Earn some."}},
		{"id":"5","parentId":"1","kind":"interrupt","name":"refund","status":"waiting","startedAt":"2026-11-21T09:31:30Z"},
		{"id":"6","parentId":"1","kind":"interrupt","name":"nap","status":"finished","decision":"expire","startedAt":"2026-11-21T09:30:00Z","endedAt":"2026-11-21T09:31:00Z",
		 "awaits":{"kind":"timer","until":"2026-11-21T09:31:00Z"}},
		{"id":"7","parentId":"1","kind":"interrupt","name":"paid","status":"waiting","startedAt":"2026-11-21T09:31:30Z",
		 "awaits":{"kind":"event","event":"payment.received","match":{"id":"A-1"},"until":"2026-11-28T09:31:00Z"}}]}`), &trace); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	answer, _ := (&environment{}).pages(&out, &out)
	newTraceTree(answer, &trace).show()
	const tree = `run clerk  running  +0s
├─ turn 1  +0s  12.3s
│  ├─ model m  +0s  1s  3+4 tokens
│  │     attempt 1 failed after 500ms: worker_lost
│  │       withdrawn: half a thought
│  │     attempt 2 finished after 500ms
│  └─ tool pay  failed  +1s  11.3s
│        tool_failed: no money
│        hint: Earn some.
├─ interrupt refund  waiting  +1m30s
├─ interrupt nap  expire  +0s  1m0s
│     waited until NAP
└─ interrupt paid  waiting  +1m30s
      waits for the event payment.received id="A-1", at most until PAID
… more spans are left out
`
	local := func(day, minute int) string {
		return time.Date(2026, 11, day, 9, minute, 0, 0, time.UTC).Local().Format("2006-01-02 15:04:05 MST")
	}
	want := strings.NewReplacer("NAP", local(21, 31), "PAID", local(28, 31)).Replace(tree)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
