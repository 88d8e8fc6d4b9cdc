package stream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
	"github.com/perdure/perdure/stream/streamtest"
	"github.com/perdure/perdure/stream/view"
)

// eventStream is a stream of events for replay.mjs.
type eventStream struct {
	Events []json.RawMessage `json:"events"`

	name string
	log  *snapshot.Snapshot
}

// replayResult is the result of a client's replay.
type replayResult struct {
	Error      string          `json:"error"`
	Messages   []agui.Message  `json:"messages"`
	State      json.RawMessage `json:"state"`
	Invalid    []replayMessage `json:"invalid"`
	Complaints []replayMessage `json:"complaints"`
}

// replayMessage is a client's message about an event of a stream.
type replayMessage struct {
	Event int    `json:"event"`
	Text  string `json:"text"`
}

// TestReferenceClientsReadJoins: the reference clients of both protocol generations read the events
// of runs and threads, from any time of joining, without a complaint. They end with the messages
// and the state of the log.
func TestReferenceClientsReadJoins(t *testing.T) {
	t.Parallel()
	for folder, profile := range map[string]stream.Generation{"v0": stream.Generation0, "v1": stream.Generation1} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join("..", "e2e", "node", folder)
			if _, err := os.Stat(filepath.Join(dir, "node_modules", "@ag-ui", "client")); err != nil {
				t.Skipf("the client is not installed: %v", err)
			}
			var streams []eventStream
			for name, tell := range joinedRuns {
				streams = append(streams, record(t, profile, name, tell, false)...)
			}
			for name, tell := range map[string]func(*projectionFixture){"three runs": (*projectionFixture).writeThread, "an abandoned run": (*projectionFixture).writeAbandonedRun} {
				streams = append(streams, record(t, profile, name, tell, true)...)
			}
			t.Logf("%d streams", len(streams))
			ends := replay(t, dir, streams)
			for i, end := range ends {
				checkReplayed(t, streams[i], end)
			}
		})
	}
}

// record writes a story and attaches a reader after every record. It returns the readers' events.
func record(t *testing.T, profile stream.Generation, name string, tell func(*projectionFixture), wholeThread bool) []eventStream {
	t.Helper()
	ctx, l := testContext(t), streamtest.Open(t)
	c := newConcurrentReaders(t, ctx, l)
	shownView := func() *view.View { return viewer(c.follower).Run(run, view.Options{Join: true, Generation: profile}) }
	if wholeThread {
		c.readOn = readFollowing
		shownView = func() *view.View {
			return viewer(c.follower).Thread(thread, view.ThreadOptions{Generation: profile, IncludeLater: true})
		}
	}
	records := 0
	s := &projectionFixture{t: t, ctx: ctx, log: l, run: run}
	s.step = func() {
		records++
		c.send(shownView(), shownEvents{what: fmt.Sprintf("%s: joined at record %d", name, records)})
	}
	tell(s)
	log := must[*snapshot.Snapshot](t)(snapshots(l).Latest(ctx, thread, 0))
	var streams []eventStream
	for _, r := range c.wait() {
		rec := eventStream{name: r.what, log: log}
		for _, f := range r.all() {
			rec.Events = append(rec.Events, f.Event)
		}
		streams = append(streams, rec)
	}
	return streams
}

// replay applies streams of events with the reference clients, and returns how each ends.
func replay(t *testing.T, dir string, streams []eventStream) []replayResult {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), "node", filepath.Join("..", "replay.mjs"))
	cmd.Dir = dir
	var lines bytes.Buffer
	for _, s := range streams {
		lines.Write(append(must[[]byte](t)(json.Marshal(s)), '\n'))
	}
	cmd.Stdin = &lines
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var ends []replayResult
	for line := range bytes.Lines(out) {
		var end replayResult
		if err := json.Unmarshal(line, &end); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		ends = append(ends, end)
	}
	mustEqual(t, "number of ends", len(ends), len(streams))
	return ends
}

// checkReplayed checks that the reference clients have accepted a stream.
func checkReplayed(t *testing.T, r eventStream, end replayResult) {
	t.Helper()
	events := asJSON(t, r.Events)
	mustEqual(t, r.name+": error", end.Error, "")
	mustEqual(t, r.name+": number of invalid events", len(end.Invalid), 0)
	for _, complaint := range end.Complaints {
		// A client may complain about the end of a call that was retracted.
		if !strings.Contains(complaint.Text, "TOOL_CALL_END: No message found containing tool call") {
			t.Errorf("%s: complaint = %q, want text with %q", r.name, complaint.Text, "TOOL_CALL_END: No message found containing tool call")
		}
	}
	var messages []agui.Message
	for _, m := range end.Messages {
		if m.Role != agui.RoleReasoning || m.Content.Text() != "" {
			messages = append(messages, m)
		}
	}
	if got, want := asJSON(t, withoutErrors(messages)), asJSON(t, withoutErrors(r.log.Messages())); got != want {
		t.Fatalf("%s: messages of the client: got\n%s\nwant those of the log\n%s\n%s", r.name, got, want, events)
	}
	if got, want := canonicalJSON(t, end.State), canonicalJSON(t, r.log.State); got != want {
		t.Fatalf("%s: state of the client: got %s, want %s\n%s", r.name, got, want, events)
	}
}
