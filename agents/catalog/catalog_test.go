package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
	"github.com/perdure/perdure/stream/streamtest"
)

// open returns a function that opens a catalog on one log.
func open(t *testing.T) (context.Context, func() *catalog.Catalog) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	s := streamtest.Server(t)
	return ctx, func() *catalog.Catalog {
		t.Helper()
		c, err := catalog.Open(ctx, streamtest.OpenOn(t, s))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// watch keeps a catalog current until the test ends.
func watch(t *testing.T, ctx context.Context, c *catalog.Catalog) {
	t.Helper()
	w, err := c.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// definition returns a definition with instructions.
func definition(name, instructions string) *agents.Definition {
	return &agents.Definition{Name: name, Model: "test/m", Instructions: instructions}
}

func TestPublicationKeepsOldRevisions(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	first, err := c.Publish(ctx, definition("a", "one"), false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Publish(ctx, definition("a", "two"), false)
	if err != nil {
		t.Fatal(err)
	}
	other := node() // it has only the data of the bucket
	watch(t, ctx, other)
	if p, err := other.Current("", "a"); err != nil || p.Revision != second || p.Instructions != "two" {
		t.Errorf("current is %+v (%v), want the second revision", p, err)
	}
	if d, err := other.Revision(ctx, "", "a", first); err != nil || d.Instructions != "one" {
		t.Errorf("first revision: got %+v (%v), want the instructions one", d, err)
	}
	if names, err := node().Names(ctx); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("Names = %q, %v, want a", names, err)
	}
	if _, err := other.Current("", "nobody"); !errors.Is(err, catalog.ErrUnknownAgent) {
		t.Errorf("Current of an unknown agent: got %v, want %v", err, catalog.ErrUnknownAgent)
	}
	if _, err := other.Revision(ctx, "", "a", "0000"); !errors.Is(err, catalog.ErrUnknownRevision) {
		t.Errorf("Revision of an unknown revision: got %v, want %v", err, catalog.ErrUnknownRevision)
	}
}

// TestNodesPublishConcurrently: API nodes that start at the same time publish the same directory.
// None may fail.
func TestNodesPublishConcurrently(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	var wait sync.WaitGroup
	for i := range 8 {
		c := node()
		wait.Go(func() {
			for n := range 5 {
				if _, err := c.Publish(ctx, definition("a", fmt.Sprint(n)), false); err != nil {
					t.Errorf("node %d: %v", i, err)
				}
			}
		})
	}
	wait.Wait()
	c := node()
	watch(t, ctx, c)
	if p, err := c.Current("", "a"); err != nil || p.Instructions == "" {
		t.Errorf("Current = %+v, %v, want instructions", p, err)
	}
}
