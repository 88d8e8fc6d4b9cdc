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

// Viewers is readers of one run that come while it goes on, and afterwards, each by another way.
type Viewers struct {
	t          *testing.T
	generation Generation
	live       *Follower     // who started the run and never leaves
	Last       string        // the run that comes next, if one does
	over       chan struct{} // closed when the run is, and the one that follows it

	reading errgroup.Group
	readers []*viewer
	ends    map[[sha256.Size]byte]reading // of streams that a client has read
}

// viewer is one of a crowd.
type viewer struct {
	what string
	*Follower
	// had is how many of the live reader's events the visitor has an old list from; -1 = it has
	// nothing, not even the input's messages.
	had    int
	binary []byte // what came, of one who asked for the binary wire
}

func NewViewers(t *testing.T, g Generation, live *Follower) *Viewers {
	return &Viewers{t: t, generation: g, live: live, over: make(chan struct{}), ends: map[[sha256.Size]byte]reading{}}
}

// Come sends readers to a run of which n events have been shown: one who has had them and goes on,
// one who goes on when all is over, and those who join.
func (c *Viewers) Come(n int) {
	for what, away := range map[string]bool{"left and came back": false, "left and came back when all was over": true} {
		v := c.visit(fmt.Sprintf("%s behind event %d", what, n), EventsPath(c.live.In))
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
	c.Join(when)
	if c.Last != "" {
		v := c.visit("followed the thread, "+when, ThreadPath(c.live.In))
		v.had = -1
		c.reading.Go(func() error { return v.readThrough(c.Last) })
	}
	old := c.visit("joined the run with an old list, "+when, EventsPath(c.live.In)+"?join=true")
	old.had = n
	c.reading.Go(old.Read)
}

// Join sends readers that have nothing: to the run, to the thread, and to the run over the binary
// wire.
func (c *Viewers) Join(when string) {
	for what, path := range map[string]string{
		"joined the run":    EventsPath(c.live.In) + "?join=true",
		"joined the thread": ThreadPath(c.live.In) + "?follow=false",
	} {
		v := c.visit(what+", "+when, path)
		v.had = -1
		c.reading.Go(v.Read)
	}
	c.Ask("joined the run over the binary wire, "+when, EventsPath(c.live.In)+"?join=true", -1)
}

// Ask sends a reader for the binary wire, which older clients do not have.
func (c *Viewers) Ask(what, path string, had int) {
	if c.generation.Legacy {
		return
	}
	v := c.visit(what, path)
	v.had = had
	c.reading.Go(func() error {
		var err error
		v.binary, err = Shared.getBinary(v.Ctx, path)
		return err
	})
}

func (c *Viewers) visit(what, path string) *viewer {
	v := &viewer{what: what, Follower: Shared.Reader(c.t, c.live.In)}
	v.View = path
	c.readers = append(c.readers, v)
	return v
}

// RunsEnd tells those who are away that all is over, and waits for all.
func (c *Viewers) RunsEnd() {
	c.t.Helper()
	close(c.over)
	c.wait()
}

func (c *Viewers) wait() {
	c.t.Helper()
	if err := c.reading.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// ComeBack sends readers that have had a part of what the live reader was shown. A socket shows
// them the same.
func (c *Viewers) ComeBack() {
	c.t.Helper()
	ws, all := Shared.Dial(c.t), c.live.Events
	for i := range all[:len(all)-1] {
		v := c.visit(fmt.Sprintf("behind event %d of the live reader", i), EventsPath(c.live.In))
		v.Events = slices.Clone(all[:i+1])
		if err := v.Read(); err != nil {
			c.t.Fatal(err)
		}
		rest, err := ws.Behind(c.live.In, all[i].ID)
		if err != nil {
			c.t.Fatal(err)
		}
		Same(c.t, v.what+", by a socket", v.Events[i+1:], rest)
	}
	c.readers = append(c.readers, &viewer{what: "the live reader", Follower: c.live})
}

// Judge checks that a client of the crowd's generation ends with the same messages and state,
// whatever it was shown: that of the uncut stream of the run that came last in what it was shown.
// Who joins while subagents speak has first what is finished first.
func (c *Viewers) Judge(runs ...*Follower) {
	c.t.Helper()
	c.wait()
	want := map[string]reading{}
	for _, f := range runs {
		if f != nil {
			want[f.In.RunID] = c.Read(&viewer{what: "the uncut stream", Follower: f})
		}
	}
	for _, v := range c.readers {
		got, want := c.Read(v), want[v.shownRun()]
		if diff := cmp.Diff(byOwner(want.Conversation()), byOwner(got.Conversation())) + cmp.Diff(want.State, got.State); diff != "" {
			c.t.Errorf("%s (-want +got):\n%s\n%s", v.what, diff, listed(v.recording("").Events))
		}
	}
}

// Read lets the client read what a visitor was shown.
func (c *Viewers) Read(v *viewer) reading {
	c.t.Helper()
	stream := v.recording(c.t.Name())
	if v.had != 0 {
		stream.Messages, stream.State = nil, nil
	}
	if v.had > 0 {
		old := c.Read(&viewer{what: "old list for one who " + v.what, Follower: c.upTo(v.had)})
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
		end, err = Clients[c.generation.Name].Read(stream)
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

// ThreadPath returns where a thread is read, run after run.
func ThreadPath(in Input) string { return "/v1/threads/" + url.PathEscape(in.ThreadID) + "/events" }

// shownRun returns the run that the visitor was shown last.
func (v *viewer) shownRun() string {
	for _, e := range slices.Backward(v.Events) {
		if e.Type == "RUN_STARTED" {
			return e.Member("runId")
		}
	}
	return v.In.RunID // all that came is binary
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

// upTo returns the live reader when it had been shown n events.
func (c *Viewers) upTo(n int) *Follower {
	f := *c.live
	f.Events = f.Events[:n]
	return &f
}

// getBinary reads a stream over the binary wire to its end.
func (p *Endpoint) getBinary(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Url(path), nil)
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
