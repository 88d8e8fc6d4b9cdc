package stream_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestThreadHasOneOwner: of many principals that begin a thread concurrently, one owns it, and the
// others learn that the thread exists. The owner may repeat its input.
func TestThreadHasOneOwner(t *testing.T) {
	t.Parallel()
	const principals = 8
	l, ctx := streamtest.Open(t), testContext(t)
	for round := range 10 {
		thread := threadNamed(fmt.Sprintf("contended-%d", round))
		begin := func(i int) (stream.Proposal, error) {
			in := &stream.Input{Requester: &auth.Principal{Tenant: thread.Tenant, Subject: fmt.Sprint(i)}}
			return l.ProposeFirstInput(ctx, stream.Run{Thread: thread, ID: fmt.Sprintf("run-%d", i)}, [32]byte{byte(i)}, in)
		}
		var begun [principals]stream.Proposal
		var errs [principals]error
		var wait sync.WaitGroup
		for i := range principals {
			wait.Go(func() { begun[i], errs[i] = begin(i) })
		}
		wait.Wait()
		owner := -1
		for i, err := range errs {
			switch {
			case err == nil && owner < 0:
				owner = i
			case !errors.Is(err, stream.ErrThreadExists):
				t.Fatalf("principal %d: got %v, want %v for all but one", i, err, stream.ErrThreadExists)
			}
		}
		if owner < 0 {
			t.Fatal("no principal has begun the thread")
		}
		if again, err := begin(owner); err != nil || again != begun[owner] {
			t.Errorf("the same input again = %+v, %v, want %+v", again, err, begun[owner])
		}
		access, err := l.AccessOf(ctx, thread)
		if err != nil || access == nil || access.Owner == nil || *access.Owner != fmt.Sprint(owner) {
			t.Errorf("access = %+v, %v, want the owner %d", access, err, owner)
		}
	}
}
