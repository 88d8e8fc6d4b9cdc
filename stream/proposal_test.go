package stream_test

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestDecisionKeepsContent: models read the content of an answer as it was sent.
func TestDecisionKeepsContent(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	const content = `{"data":"<a> & b"}`
	d := &stream.Decision{CallID: "c1", Kind: "answer", Content: json.RawMessage(content)}
	p, err := l.ProposeDecision(ctx, runNamed("r1"), sha256.Sum256([]byte(content)), d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Decision(ctx, p.Seq)
	if err != nil || string(got.Content) != content {
		t.Errorf("content = %s, %v, want %s", got.Content, err, content)
	}
}

// TestDecisionsAreProposedOnce: a caller who repeats a decision gets the same proposal, also
// concurrently. A caller who returns to an earlier decision gets a new proposal, and so does
// another caller.
func TestDecisionsAreProposedOnce(t *testing.T) {
	t.Parallel()
	ctx, l := testContext(t), streamtest.Open(t)
	propose := func(by, kind string) uint64 {
		t.Helper()
		d := &stream.Decision{CallID: "c1", Kind: kind, By: &auth.Principal{Tenant: "default", Subject: by}}
		p, err := l.ProposeDecision(ctx, runNamed("r1"), sha256.Sum256([]byte(by+kind)), d)
		if err != nil {
			t.Fatal(err)
		}
		return p.Seq
	}
	first := propose("ann", "approve")
	if again := propose("ann", "approve"); again != first {
		t.Errorf("the repeated decision is record %d, want %d", again, first)
	}
	edit := propose("ann", "edit")
	if edit <= first {
		t.Errorf("the edit is record %d, want one after %d", edit, first)
	}
	back := propose("ann", "approve")
	if back <= edit {
		t.Errorf("the return to the first decision is record %d, want one after %d", back, edit)
	}
	if bobs := propose("bob", "approve"); bobs <= back {
		t.Errorf("the decision of another caller is record %d, want one after %d", bobs, back)
	}
	if again := propose("ann", "approve"); again != back {
		t.Errorf("the repeated decision is record %d, want %d", again, back)
	}
	var all sync.WaitGroup
	seqs := make([]uint64, 8)
	for i := range seqs {
		all.Go(func() { seqs[i] = propose("eve", "approve") })
	}
	all.Wait()
	for _, seq := range seqs {
		if seq != seqs[0] {
			t.Errorf("concurrent equal decisions are records %v, want one", seqs)
			break
		}
	}
}
