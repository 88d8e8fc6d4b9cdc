package kit

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
)

// Approval is an approval in the inbox.
type Approval struct {
	ID, ThreadID, Agent, Step, Message, ToolName, ArgsDigest, Status string
	Args                                                             map[string]any
	Decisions                                                        []struct{ Decision, By, Channel, Digest, ArgsDigest string }
}

// GetJSON decodes the response of a path, which must be 200.
func (p *Endpoint) GetJSON(t *testing.T, path string, into any) {
	t.Helper()
	resp, err := p.Get(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %s, %v, want %d", path, resp.Status, err, http.StatusOK)
	}
}

// InboxPage is a page of the inbox.
type InboxPage struct {
	Items        []Approval
	EventsCursor string
}

// AwaitPending waits until the inbox lists exactly these threads.
func (p *Endpoint) AwaitPending(t *testing.T, query string, threads ...string) InboxPage {
	t.Helper()
	slices.Sort(threads)
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	defer cancel()
	for {
		var page InboxPage
		p.GetJSON(t, "/v1/approvals"+query, &page)
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

// ReadInboxEvents reads n events of the inbox after a cursor. It returns their types with the
// threads, sorted, and the last cursor.
func (p *Endpoint) ReadInboxEvents(t *testing.T, after string, n int) (happened []string, cursor string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), WaitTimeout)
	defer cancel()
	resp, err := p.Get(ctx, "/v1/approvals/events", after)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("feed: got %s, want %d", resp.Status, http.StatusOK)
	}
	feed, err := ReadEvents(resp)
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	for len(happened) < n {
		e, err := feed.Next()
		if err != nil {
			t.Fatalf("after %q: %v", happened, err)
		}
		var event struct {
			Type     string
			Approval Approval
		}
		if err := json.Unmarshal(e.Data, &event); err != nil {
			t.Fatal(err)
		}
		happened, cursor = append(happened, event.Type+" "+event.Approval.ThreadID), e.ID
	}
	slices.Sort(happened)
	return happened, cursor
}
