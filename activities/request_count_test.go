package activities_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestRequestsOfTextRun counts the requests to the log of a run with one model call, before the call
// and after it. Those for the entry in the index of threads are concurrent with the call.
func TestRequestsOfTextRun(t *testing.T) {
	t.Parallel()
	var requests func() streamtest.Requests
	var before streamtest.Requests
	f := setup(t, func(int, *llm.Request) ([]llm.Chunk, error) {
		before = requests()
		return []llm.Chunk{llm.TextDelta{Text: "Hi."}, llm.Finish{Reason: llm.FinishStop}}, nil
	})
	requests = streamtest.CountRequests(t, f.server)
	f.run("hello")
	after := requests()
	main, read := f.log.LaneSubject(run, stream.LaneMain), "DIRECT.GET.PERDURE"
	for what, all := range map[string]*streamtest.Requests{"before": &before, "after": &after} {
		*all = slices.DeleteFunc(*all, func(m *nats.Msg) bool {
			ofReader := strings.Contains(string(m.Data), `perdure.default.t1.r1.\u003e`)
			ofIndex := strings.HasSuffix(string(m.Data), `"next_by_subj":"perdure.default.t1.\u003e"}`)
			return ofReader || ofIndex
		})
		if got := all.Number("STREAM.MSG.GET.PERDURE"); got != 0 {
			t.Errorf("requests to the leader %s the model call = %d, want 0", what, got)
		}
	}
	// The input, the last record of the thread, the records up to there, those up to the attempt's first
	// one, and the input.
	if reads, writes := before.Number(read), before.Number(main); reads != 5 || writes != 1 {
		t.Errorf("before the model call: got %d reads and %d writes, want 5 and 1:\n%s", reads, writes, strings.Join(before.Subjects(), "\n"))
	}
	// The last record of the lane, and the records of the run, for the checkpoint. The ends of the call and
	// of the run are one write each. The first has the text, unless the attempt's writer already wrote it.
	written := map[string]int{}
	for _, m := range after {
		if kind, _, isRecord := strings.Cut(m.Header.Get("Perdure"), " "); isRecord && m.Subject == main {
			written[kind]++
		}
	}
	text := after.Number(main) - written["done"] - written["terminal"]
	if reads := after.Number(read); reads != 2 || written["done"] != 1 || written["terminal"] != 1 || text > 1 {
		t.Errorf("after the model call: got %d reads and the writes %v, want 2 and the ends of the call and the run:\n%s", reads, written, strings.Join(after.Subjects(), "\n"))
	}
}
