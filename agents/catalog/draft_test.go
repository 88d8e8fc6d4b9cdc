package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
)

// putDraft stores a draft of an agent with instructions, and returns its revision.
func putDraft(t *testing.T, ctx context.Context, c *catalog.Catalog, tenant, instructions string) string {
	t.Helper()
	revision, err := c.PutDraft(ctx, tenant, definition("a", instructions), &auth.Principal{Tenant: "acme", Subject: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestDraftIsNeverCurrent: a draft is found by its revision, also by a process that was not there
// when it was written, and nowhere else.
func TestDraftIsNeverCurrent(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	if _, err := c.Put(ctx, "", definition("a", "published"), nil, "", acceptAny); err != nil {
		t.Fatal(err)
	}
	before := c.Bytes("")
	revision := putDraft(t, ctx, c, "", "draft")
	if again := putDraft(t, ctx, c, "", "draft"); again != revision {
		t.Errorf("the same draft again: %s, want %s", again, revision)
	}
	if got := c.Bytes(""); got <= before {
		t.Errorf("bytes = %d, want more than %d: a draft counts", got, before)
	}
	if current, err := c.Current("", "a"); err != nil || current.Instructions != "published" {
		t.Errorf("current = %+v, %v, want the published one", current.Definition, err)
	}
	if latest, err := c.Latest(ctx, "", "a"); err != nil || latest.Instructions != "published" {
		t.Errorf("latest = %+v, %v, want the published one", latest.Definition, err)
	}
	if list, err := c.Publications("", "a"); err != nil || len(list) != 1 {
		t.Errorf("publications = %v, %v, want one", list, err)
	}
	if named, err := c.Named(ctx, "acme", "a", revision); err != nil || named.Instructions != "draft" || !named.IsDraft {
		t.Errorf("named = %+v, %v, want the draft", named, err)
	}
	if d, err := node().Revision(ctx, "acme", "a", revision); err != nil || d.Instructions != "draft" {
		t.Errorf("the draft in another process = %+v, %v, want it", d, err)
	}
	if _, err := c.PutDraft(ctx, "acme", definition("a", "taken"), nil); !errors.Is(err, catalog.ErrTaken) {
		t.Errorf("a draft of a tenant with a name of the platform: %v, want ErrTaken", err)
	}
	published, err := c.Put(ctx, "", definition("a", "draft"), nil, "", acceptAny)
	if err != nil || published != revision {
		t.Fatalf("publication of the draft = %s, %v, want %s", published, err, revision)
	}
	if named, err := c.Named(ctx, "acme", "a", revision); err != nil || named.IsDraft {
		t.Errorf("named after its publication = %+v, %v, want no draft", named, err)
	}
}

// TestDraftsOfTenants: a draft of a tenant is unknown to other tenants, and has an author.
func TestDraftsOfTenants(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	revision := putDraft(t, ctx, c, "acme", "of acme")
	if named, err := c.Named(ctx, "acme", "a", revision); err != nil || named.Tenant != "acme" {
		t.Errorf("named = %+v, %v, want the draft of acme", named, err)
	}
	brief, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.Named(brief, "globex", "a", revision); err == nil {
		t.Error("another tenant finds the draft, want an error")
	}
	authors, err := c.Authors(ctx, "acme", stream.AgentRevision{Agent: "a", Revision: revision})
	if err != nil || len(authors) != 1 || authors[0].Subject != "ann" {
		t.Errorf("authors = %v, %v, want ann", authors, err)
	}
}

// TestUnusedDraftsAreRemoved: of the drafts that no run has used, the latest MaxDrafts stay. A draft
// that was used stays.
func TestUnusedDraftsAreRemoved(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	used := putDraft(t, ctx, c, "", "used")
	for range 2 {
		if err := c.UseDraft(ctx, "", "a", used); err != nil {
			t.Fatal(err)
		}
	}
	oldest := putDraft(t, ctx, c, "", "oldest")
	second := putDraft(t, ctx, c, "", "second")
	for i := range catalog.MaxDrafts - 2 {
		putDraft(t, ctx, c, "", fmt.Sprint(i))
	}
	putDraft(t, ctx, c, "", "oldest") // is the latest now
	putDraft(t, ctx, c, "", "one more")
	if err := c.UseDraft(ctx, "", "a", second); !errors.Is(err, catalog.ErrUnknownRevision) {
		t.Errorf("use of the oldest unused draft: %v, want ErrUnknownRevision", err)
	}
	fresh := node()
	for name, revision := range map[string]string{"used": used, "written again": oldest} {
		if _, err := fresh.Revision(ctx, "", "a", revision); err != nil {
			t.Errorf("%s: %v, want it", name, err)
		}
	}
	brief, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := fresh.Revision(brief, "", "a", second); err == nil {
		t.Error("the definition of a removed draft is there, want none")
	}
}

// TestConcurrentDrafts: a draft that is used while others remove it is either there, or unknown to
// its user.
func TestConcurrentDrafts(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c, other := node(), node()
	watch(t, ctx, c)
	watch(t, ctx, other)
	var wait sync.WaitGroup
	for n, c := range []*catalog.Catalog{c, other} {
		wait.Go(func() {
			for i := range 2 * catalog.MaxDrafts {
				revision := putDraft(t, ctx, c, "", fmt.Sprint(n, i%(catalog.MaxDrafts+5)))
				if i%3 != 0 {
					continue
				}
				if err := c.UseDraft(ctx, "", "a", revision); err != nil {
					t.Errorf("use of a draft that was just written: %v", err)
				}
				if _, err := node().Revision(ctx, "", "a", revision); err != nil {
					t.Errorf("a used draft: %v, want it", err)
				}
			}
		})
	}
	wait.Wait()
}
