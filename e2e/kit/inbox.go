package kit

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
)

// Approval is one as the inbox has it.
type Approval struct {
	ID, ThreadID, Agent, Step, Message, ToolName, ArgsDigest, Status string
	Args                                                             map[string]any
	Decisions                                                        []struct{ Decision, By, Channel, Digest, ArgsDigest string }
}

// Ask reads an answer that is JSON.
func (p *Endpoint) Ask(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := p.Get(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", path, resp.Status, err)
	}
}

type InboxPage struct {
	Items        []Approval
	EventsCursor string
}

// Pending waits until just these threads wait for somebody.
func (p *Endpoint) Pending(t *testing.T, query string, threads ...string) InboxPage {
	t.Helper()
	slices.Sort(threads)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	for {
		var page InboxPage
		p.Ask(t, "/v1/approvals"+query, &page)
		var got []string
		for _, a := range page.Items {
			got = append(got, a.ThreadID)
		}
		slices.Sort(got)
		if slices.Equal(got, threads) || len(got)+len(threads) == 0 {
			return page
		}
		if ctx.Err() != nil {
			t.Fatalf("%q wait, want %q", got, threads)
		}
	}
}

// Happened reads what happens to approvals behind a cursor, and returns that and the cursor behind
// it.
func (p *Endpoint) Happened(t *testing.T, after string, n int) (what []string, cursor string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	resp, err := p.Get(ctx, "/v1/approvals/events", after)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the feed: %s", resp.Status)
	}
	feed, err := ReadEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for len(what) < n {
		e, err := feed.Next()
		if err != nil {
			t.Fatalf("behind %q: %v", what, err)
		}
		var said struct {
			Type     string
			Approval Approval
		}
		if err := json.Unmarshal(e.Data, &said); err != nil {
			t.Fatal(err)
		}
		what, cursor = append(what, said.Type+" "+said.Approval.ThreadID), e.ID
	}
	slices.Sort(what)
	return what, cursor
}
