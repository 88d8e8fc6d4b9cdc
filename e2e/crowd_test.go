package e2e

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

// crowd is readers of one run that come while it goes on, and afterwards, each by another way.
type crowd struct {
	t          *testing.T
	generation generation
	live       *follower     // who started the run and never leaves
	last       string        // the run that comes next, if one does
	over       chan struct{} // closed when the run is, and the one that follows it

	reading errgroup.Group
	readers []*visitor
	ends    map[[sha256.Size]byte]reading // of streams that a client has read
}

// visitor is one of a crowd.
type visitor struct {
	what string
	*follower
	// had is how many of the live reader's events the visitor has an old list from; -1 = it has
	// nothing, not even the input's messages.
	had    int
	binary []byte // what came, of one who asked for the binary wire
}

func newCrowd(t *testing.T, g generation, live *follower) *crowd {
	return &crowd{t: t, generation: g, live: live, over: make(chan struct{}), ends: map[[sha256.Size]byte]reading{}}
}

// come sends readers to a run of which n events have been shown: one who has had them and goes on,
// one who goes on when all is over, and those who join.
func (c *crowd) come(n int) {
	for what, away := range map[string]bool{"left and came back": false, "left and came back when all was over": true} {
		v := c.visit(fmt.Sprintf("%s behind event %d", what, n), eventsPath(c.live.in))
		c.reading.Go(func() error {
			for range n {
				if e, err := v.next(); err != nil || e.terminal() {
					return err
				}
			}
			v.cut()
			if away {
				select {
				case <-c.over:
				case <-v.ctx.Done():
				}
			}
			return v.read()
		})
	}
	when := fmt.Sprintf("at event %d", n)
	c.join(when)
	if c.last != "" {
		v := c.visit("followed the thread, "+when, threadPath(c.live.in))
		v.had = -1
		c.reading.Go(func() error { return v.readThrough(c.last) })
	}
	old := c.visit("joined the run with an old list, "+when, eventsPath(c.live.in)+"?join=true")
	old.had = n
	c.reading.Go(old.read)
}

// join sends readers that have nothing: to the run, to the thread, and to the run over the binary
// wire.
func (c *crowd) join(when string) {
	for what, path := range map[string]string{
		"joined the run":    eventsPath(c.live.in) + "?join=true",
		"joined the thread": threadPath(c.live.in) + "?follow=false",
	} {
		v := c.visit(what+", "+when, path)
		v.had = -1
		c.reading.Go(v.read)
	}
	c.ask("joined the run over the binary wire, "+when, eventsPath(c.live.in)+"?join=true", -1)
}

// ask sends a reader for the binary wire, which older clients do not have.
func (c *crowd) ask(what, path string, had int) {
	if c.generation.legacy {
		return
	}
	v := c.visit(what, path)
	v.had = had
	c.reading.Go(func() error {
		var err error
		v.binary, err = shared.getBinary(v.ctx, path)
		return err
	})
}

func (c *crowd) visit(what, path string) *visitor {
	v := &visitor{what: what, follower: shared.reader(c.t, c.live.in)}
	v.view = path
	c.readers = append(c.readers, v)
	return v
}

// runsEnd tells those who are away that all is over, and waits for all.
func (c *crowd) runsEnd() {
	c.t.Helper()
	close(c.over)
	c.wait()
}

func (c *crowd) wait() {
	c.t.Helper()
	if err := c.reading.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// comeBack sends readers that have had a part of what the live reader was shown. A socket shows
// them the same.
func (c *crowd) comeBack() {
	c.t.Helper()
	ws, all := shared.dial(c.t), c.live.events
	for i := range all[:len(all)-1] {
		v := c.visit(fmt.Sprintf("behind event %d of the live reader", i), eventsPath(c.live.in))
		v.events = slices.Clone(all[:i+1])
		if err := v.read(); err != nil {
			c.t.Fatal(err)
		}
		rest, err := ws.behind(c.live.in, all[i].ID)
		if err != nil {
			c.t.Fatal(err)
		}
		same(c.t, v.what+", by a socket", v.events[i+1:], rest)
	}
	c.readers = append(c.readers, &visitor{what: "the live reader", follower: c.live})
}

// judge checks that a client of the crowd's generation ends with the same messages and state,
// whatever it was shown: that of the uncut stream of the run that came last in what it was shown.
// Who joins while subagents speak has first what is finished first.
func (c *crowd) judge(runs ...*follower) {
	c.t.Helper()
	c.wait()
	want := map[string]reading{}
	for _, f := range runs {
		if f != nil {
			want[f.in.RunID] = c.read(&visitor{what: "the uncut stream", follower: f})
		}
	}
	for _, v := range c.readers {
		got, want := c.read(v), want[v.shownRun()]
		if diff := cmp.Diff(byOwner(want.conversation()), byOwner(got.conversation())) + cmp.Diff(want.State, got.State); diff != "" {
			c.t.Errorf("%s (-want +got):\n%s\n%s", v.what, diff, listed(v.recording("").Events))
		}
	}
}

// read lets the client read what a visitor was shown.
func (c *crowd) read(v *visitor) reading {
	c.t.Helper()
	stream := v.recording(c.t.Name())
	if v.had != 0 {
		stream.Messages, stream.State = nil, nil
	}
	if v.had > 0 {
		old := c.read(&visitor{what: "old list for one who " + v.what, follower: c.upTo(v.had)})
		stream.Messages, stream.State = old.Messages, old.State
	}
	if v.binary != nil {
		stream.Events, stream.Protobuf = nil, v.binary
	}
	sum, err := stream.sum()
	if end, ok := c.ends[sum]; ok {
		return end
	}
	var end reading
	if err == nil {
		end, err = clients[c.generation.name].read(stream)
	}
	if err == nil {
		err = end.verdict()
	}
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", v.what, err, listed(stream.Events))
	}
	c.ends[sum] = end
	return end
}

// threadPath returns where a thread is read, run after run.
func threadPath(in input) string { return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/events" }

// shownRun returns the run that the visitor was shown last.
func (v *visitor) shownRun() string {
	for _, e := range slices.Backward(v.events) {
		if e.Type == "RUN_STARTED" {
			return e.member("runId")
		}
	}
	return v.in.RunID // all that came is binary
}

// readThrough reads a thread to the end of a run.
func (v *visitor) readThrough(run string) error {
	defer v.cut()
	for {
		if e, err := v.next(); err != nil || e.terminal() && v.shownRun() == run {
			return err
		}
	}
}

// upTo returns the live reader when it had been shown n events.
func (c *crowd) upTo(n int) *follower {
	f := *c.live
	f.events = f.events[:n]
	return &f
}

// getBinary reads a stream over the binary wire to its end.
func (p *endpoint) getBinary(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url(path), nil)
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
