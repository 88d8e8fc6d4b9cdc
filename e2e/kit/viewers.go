package kit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
)

// Viewers are the readers of one run. They connect while the run streams and afterwards, each in
// another way.
type Viewers struct {
	t          *testing.T
	generation Generation
	live       *Follower     // started the run and never disconnects
	Last       string        // id of the next run; "" = none
	over       chan struct{} // closed when the run and the next one have ended

	reading errgroup.Group
	readers []*viewer
	ends    map[[sha256.Size]byte]clientResult // by the hash of the stream
}

// viewer is one of the viewers.
type viewer struct {
	what string
	*Follower
	// had is the number of the live reader's events that the viewer has before it reads; -1 = it
	// has no messages, not even the input's.
	had    int
	binary []byte // the stream of a viewer that reads the binary wire
}

// NewViewers returns the viewers of a run that live has started.
func NewViewers(t *testing.T, g Generation, live *Follower) *Viewers {
	return &Viewers{t: t, generation: g, live: live, over: make(chan struct{}), ends: map[[sha256.Size]byte]clientResult{}}
}

// AddAtEvent adds viewers when the run has sent n events: two that disconnect and continue, now or
// when the run has ended, and viewers that join.
func (c *Viewers) AddAtEvent(n int) {
	for what, away := range map[string]bool{"disconnected and continued": false, "disconnected and continued after the end": true} {
		v := c.add(fmt.Sprintf("%s after event %d", what, n), EventsPath(c.live.In))
		c.reading.Go(func() error {
			for range n {
				if e, err := v.Next(); err != nil || e.Terminal() {
					return err
				}
			}
			v.Cut()
			if away {
				select {
				case <-c.over:
				case <-v.Ctx.Done():
				}
			}
			return v.Read()
		})
	}
	when := fmt.Sprintf("at event %d", n)
	c.AddJoining(when)
	if c.Last != "" {
		v := c.add("followed the thread, "+when, ThreadPath(c.live.In))
		v.had = -1
		c.reading.Go(func() error { return v.readThrough(c.Last) })
	}
	old := c.add("joined the run with an old list, "+when, EventsPath(c.live.In)+"?join=true")
	old.had = n
	c.reading.Go(old.Read)
}

// AddJoining adds viewers without earlier events: of the run, of the thread, and of the run over
// the binary wire.
func (c *Viewers) AddJoining(when string) {
	for what, path := range map[string]string{
		"joined the run":    EventsPath(c.live.In) + "?join=true",
		"joined the thread": ThreadPath(c.live.In) + "?follow=false",
	} {
		v := c.add(what+", "+when, path)
		v.had = -1
		c.reading.Go(v.Read)
	}
	c.AddBinary("joined the run over the binary wire, "+when, EventsPath(c.live.In)+"?join=true", -1)
}

// AddBinary adds a viewer that reads the binary wire. Legacy clients do not have it.
func (c *Viewers) AddBinary(what, path string, had int) {
	if c.generation.Legacy {
		return
	}
	v := c.add(what, path)
	v.had = had
	c.reading.Go(func() error {
		var err error
		v.binary, err = Shared.getBinary(v.Ctx, path)
		return err
	})
}

// add adds a viewer that reads a path.
func (c *Viewers) add(what, path string) *viewer {
	v := &viewer{what: what, Follower: Shared.NewFollower(c.t, c.live.In)}
	v.AttachPath = path
	c.readers = append(c.readers, v)
	return v
}

// Finish tells the disconnected viewers that the runs have ended, and waits for all viewers.
func (c *Viewers) Finish() {
	c.t.Helper()
	close(c.over)
	c.wait()
}

// wait waits for all viewers.
func (c *Viewers) wait() {
	c.t.Helper()
	if err := c.reading.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// Reconnect adds viewers that continue after each of the live reader's events. A socket must show
// the same.
func (c *Viewers) Reconnect() {
	c.t.Helper()
	ws, all := Shared.Dial(c.t), c.live.Events
	for i := range all[:len(all)-1] {
		v := c.add(fmt.Sprintf("after event %d of the live reader", i), EventsPath(c.live.In))
		v.Events = slices.Clone(all[:i+1])
		if err := v.Read(); err != nil {
			c.t.Fatal(err)
		}
		rest, err := ws.ReadAfter(c.live.In, all[i].ID)
		if err != nil {
			c.t.Fatal(err)
		}
		WantSameEvents(c.t, v.what+", by a socket", v.Events[i+1:], rest)
	}
	c.readers = append(c.readers, &viewer{what: "the live reader", Follower: c.live})
}

// Verify checks that the reference client has the same messages and state for all viewers. It
// compares them with the uncut stream of the last run that a viewer saw. Viewers that join while
// subagents stream get finished messages first.
func (c *Viewers) Verify(runs ...*Follower) {
	c.t.Helper()
	c.wait()
	want := map[string]clientResult{}
	for _, f := range runs {
		if f != nil {
			want[f.In.RunID] = c.Read(&viewer{what: "the uncut stream", Follower: f})
		}
	}
	for _, v := range c.readers {
		got, want := c.Read(v), want[v.shownRun()]
		if diff := cmp.Diff(shownLive(want.Conversation()), shownLive(got.Conversation())) + cmp.Diff(want.State, got.State); diff != "" {
			c.t.Errorf("%s (-want +got):\n%s\n%s", v.what, diff, formatEvents(v.recording("").Events))
		}
	}
}

// Read makes the reference client read a viewer's stream.
func (c *Viewers) Read(v *viewer) clientResult {
	c.t.Helper()
	stream := v.recording(c.t.Name())
	if v.had != 0 {
		stream.Messages, stream.State = nil, nil
	}
	if v.had > 0 {
		old := c.Read(&viewer{what: "old list of: " + v.what, Follower: c.upTo(v.had)})
		stream.Messages, stream.State = old.Messages, old.State
	}
	if v.binary != nil {
		stream.Events, stream.Protobuf = nil, v.binary
	}
	sum, err := stream.sum()
	if end, ok := c.ends[sum]; ok {
		return end
	}
	var end clientResult
	if err == nil {
		end, err = ReferenceClients[c.generation.Name].Read(stream)
	}
	if err == nil {
		err = end.check()
	}
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", v.what, err, formatEvents(stream.Events))
	}
	c.ends[sum] = end
	return end
}

// ThreadPath returns the path of a thread's events, over all its runs.
func ThreadPath(in Input) string { return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/events" }

// shownRun returns the id of the last run that the viewer saw.
func (v *viewer) shownRun() string {
	for _, e := range slices.Backward(v.Events) {
		if e.Type == "RUN_STARTED" {
			return e.Member("runId")
		}
	}
	return v.In.RunID // the stream is binary
}

// readThrough reads a thread to the end of a run.
func (v *viewer) readThrough(run string) error {
	defer v.Cut()
	for {
		if e, err := v.Next(); err != nil || e.Terminal() && v.shownRun() == run {
			return err
		}
	}
}

// upTo returns the live reader with its first n events.
func (c *Viewers) upTo(n int) *Follower {
	f := *c.live
	f.Events = f.Events[:n]
	return &f
}

// getBinary reads a stream over the binary wire to its end.
func (p *Endpoint) getBinary(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL(path), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.ag-ui.event+proto")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if got := resp.Header.Get("Content-Type"); err == nil && got != req.Header.Get("Accept") {
		err = fmt.Errorf("%s with Content-Type %q: %.300s", resp.Status, got, body)
	}
	return body, err
}

// shownLive returns a conversation without what only messages of a snapshot have: the event
// TOOL_CALL_RESULT has no error. It changes the messages.
func shownLive(messages []map[string]any) []map[string]any {
	for _, m := range messages {
		if m["role"] == "tool" {
			delete(m, "error")
		}
	}
	return sortByOwner(messages)
}
