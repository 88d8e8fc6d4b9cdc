package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/agents/catalog"
)

// acceptAny accepts any current revision.
func acceptAny(string) bool { return true }

// TestPublicationsAreListedInOrder: a watched catalog has its own publications at once, and
// lists all in order.
func TestPublicationsAreListedInOrder(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	began := time.Now().Add(-time.Minute)
	for _, text := range []string{"one", "two", "one"} {
		revision, err := c.Put(ctx, "", definition("a", text), nil, "", acceptAny)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.Current("", "a"); err != nil || p.Revision != revision {
			t.Fatalf("current revision = %s (%v), want %s", p.Revision, err, revision)
		}
		if again, err := c.Put(ctx, "", definition("a", text), nil, "", acceptAny); err != nil || again != revision {
			t.Fatalf("revision of a repeated publication = %s (%v), want %s", again, err, revision)
		}
	}
	one, two := definition("a", "one").Revision(), definition("a", "two").Revision()
	other := node()
	watch(t, ctx, other)
	for _, c := range []*catalog.Catalog{c, other} {
		list, err := c.Publications("", "a")
		if err != nil || len(list) != 3 {
			t.Fatalf("Publications = %+v (%v), want 3", list, err)
		}
		for i, p := range list {
			if p.Number != uint64(i+1) || p.Revision != []string{one, two, one}[i] || p.Source != catalog.SourcePut || p.At.Before(began) {
				t.Errorf("publication %d: got %+v, want that number, its revision and its source", i+1, p)
			}
		}
		if p, err := c.Current("", "a"); err != nil || p.Instructions != "one" {
			t.Errorf("Current = %+v (%v), want the instructions one", p, err)
		}
		if _, err := c.Publications("", "nobody"); !errors.Is(err, catalog.ErrUnknownAgent) {
			t.Errorf("Publications of an unknown agent: got %v, want %v", err, catalog.ErrUnknownAgent)
		}
	}
}

// TestManyPublications: from ten on, numbers and their texts sort differently.
func TestManyPublications(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	for i := range 12 {
		if _, err := c.Put(ctx, "", definition("a", strconv.Itoa(i)), nil, "", acceptAny); err != nil {
			t.Fatal(err)
		}
	}
	watch(t, ctx, c)
	list, err := c.Publications("", "a")
	if err != nil || len(list) != 12 || list[11].Number != 12 {
		t.Errorf("got %d publications, %v: %+v, want 12", len(list), err, list)
	}
	if p, _ := c.Current("", "a"); p.Definition == nil || p.Instructions != "11" {
		t.Errorf("Current = %+v, want the instructions 11", p)
	}
}

// TestDirectoryKeepsPublishedDefinitions: a directory replaces a definition that a client has
// published only with force, or if the directory had the same definition before.
func TestDirectoryKeepsPublishedDefinitions(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	publish := func(text string, force bool, want error) {
		t.Helper()
		if _, err := c.Publish(ctx, definition("a", text), force); !errors.Is(err, want) {
			t.Errorf("the directory's %q: %v, want %v", text, err, want)
		}
	}
	put := func(text string) {
		t.Helper()
		if _, err := c.Put(ctx, "", definition("a", text), nil, "", acceptAny); err != nil {
			t.Fatal(err)
		}
	}
	current := func(text string, source catalog.Source) {
		t.Helper()
		p, err := c.Current("", "a")
		list, listed := c.Publications("", "a")
		if err := errors.Join(err, listed); err != nil {
			t.Fatal(err)
		}
		if last := list[len(list)-1]; p.Instructions != text || last.Source != source || last.Revision != p.Revision {
			t.Errorf("current is %q, published by %+v, want %q by %s", p.Instructions, last, text, source)
		}
	}
	publish("one", false, nil)
	publish("two", false, nil)
	current("two", catalog.SourceDirectory)
	put("three")
	publish("two", false, catalog.ErrKept)
	publish("four", false, catalog.ErrKept)
	current("three", catalog.SourcePut)
	publish("four", true, nil)
	current("four", catalog.SourceDirectory)
	put("five")
	publish("five", false, nil)
	current("five", catalog.SourceDirectory)
	publish("six", false, nil)
	put("six") // that of the directory
	publish("seven", false, nil)
	current("seven", catalog.SourceDirectory)
}

// TestRestoredFileIsNotPublishedAgain: a client restores the definition of the directory. Starts of
// processes with that directory add no publication.
func TestRestoredFileIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	watch(t, ctx, c)
	start := func() {
		t.Helper()
		if _, err := c.Publish(ctx, definition("a", "file"), false); err != nil {
			t.Fatal(err)
		}
	}
	start()
	start()
	for _, text := range []string{"changed", "file"} {
		if _, err := c.Put(ctx, "", definition("a", text), nil, "", acceptAny); err != nil {
			t.Fatal(err)
		}
	}
	start()
	start()
	list, err := c.Publications("", "a")
	if err != nil || len(list) != 3 || list[2].Source != catalog.SourcePut {
		t.Errorf("publications = %+v (%v), want one of the directory and two of the client", list, err)
	}
}

// TestPutRefusesOutdatedRevision: of many publishers that expect the same revision, one succeeds.
func TestPutRefusesOutdatedRevision(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	var nodes []*catalog.Catalog
	for range 4 {
		nodes = append(nodes, node())
	}
	was := ""
	for round := range 3 {
		var (
			mu   sync.Mutex
			wait sync.WaitGroup
			won  []string
		)
		for i, c := range nodes {
			wait.Go(func() {
				revision, err := c.Put(ctx, "", definition("a", strconv.Itoa(round*10+i)), nil, "", func(current string) bool { return current == was })
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, revision)
				} else if !errors.Is(err, catalog.ErrMismatch) {
					t.Errorf("Put with an outdated revision: got %v, want %v", err, catalog.ErrMismatch)
				}
			})
		}
		wait.Wait()
		if len(won) != 1 {
			t.Fatalf("round %d: number of publications = %d, want 1: %v", round, len(won), won)
		}
		was = won[0]
	}
	c := node()
	watch(t, ctx, c)
	if list, err := c.Publications("", "a"); err != nil || len(list) != 3 || list[2].Revision != was {
		t.Errorf("Publications = %+v (%v), want 3 with the last %s", list, err, was)
	}
}

// TestConcurrentPublicationsAreAllListed: each of several concurrent publications has its own
// number, and none is lost.
func TestConcurrentPublicationsAreAllListed(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	var wait sync.WaitGroup
	for i := range 4 {
		c := node()
		wait.Go(func() {
			for n := range 5 {
				if _, err := c.Put(ctx, "", definition("a", strconv.Itoa(i*10+n)), nil, "", acceptAny); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	c := node()
	watch(t, ctx, c)
	list, err := c.Publications("", "a")
	if err != nil || len(list) != 20 {
		t.Fatalf("number of publications = %d (%v), want 20", len(list), err)
	}
	if !slices.IsSortedFunc(list, func(a, b catalog.Publication) int { return int(a.Number) - int(b.Number) }) || list[19].Number != 20 {
		t.Errorf("Publications = %+v, want 20 in their order", list)
	}
}

// TestPublishingEndsWithContext: a publication waits for the watch no longer than its context.
func TestPublishingEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	w, err := c.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := c.Put(brief, "", definition("a", "one"), nil, "", acceptAny); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put with an ended context: got %v, want %v", err, context.DeadlineExceeded)
	}
}
