package quota

import (
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/auth"
)

// TestBytesAreShared: a tenant with many requests leaves half of the free bytes to others, and a
// subject half of its tenant's. A single request may have all that is free.
func TestBytesAreShared(t *testing.T) {
	t.Parallel()
	b := NewBytes(256, nil, BodyBytes)
	var all []*Portion
	// fill takes portions of 1 byte for a caller, and returns how many it got, and why no more.
	fill := func(tenant, subject string) string {
		for n := 0; ; n++ {
			p := b.Portion(auth.Principal{Tenant: tenant, Subject: subject})
			if err := p.Grow(uncountedBytes + 1); err != nil {
				if share, ok := errors.AsType[*ShareError](err); ok {
					return fmt.Sprintf("%d, then the %s has its %d", n, share.Holder, share.Used)
				}
				return fmt.Sprintf("%d, then %v", n, err)
			}
			all = append(all, p)
		}
	}
	want := func(fact, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", fact, got, want)
		}
	}
	want("first subject", fill("acme", "ann"), "64, then the subject has its 64")
	want("second subject", fill("acme", "bob"), "32, then the subject has its 32")
	want("tenant of these", fill("acme", ""), "32, then the tenant has its 128")
	want("third subject", fill("acme", "cem"), "0, then the tenant has its 128")
	want("second tenant", fill("globex", ""), "64, then the tenant has its 64")
	want("without credentials", fill("", ""), "32, then the tenant has its 32")

	large := b.Portion(auth.Principal{Tenant: "initech", Subject: "eve"})
	for size := range 33 {
		if err := large.Grow(uncountedBytes + size); err != nil {
			t.Errorf("the only request of a tenant, of %d of 32 free bytes: %v", size, err)
		}
	}
	if err := large.Grow(uncountedBytes + 33); !errors.Is(err, ErrFull) {
		t.Errorf("a request of more than all free bytes: got %v, want %v", err, ErrFull)
	}
	if err := b.Portion(auth.Principal{Tenant: "acme"}).Grow(uncountedBytes); err != nil {
		t.Errorf("a small request: got %v, want no error", err)
	}
	for _, p := range append(all, large, large) {
		p.Release()
	}
	if b.free != 256 || len(b.taken) != 0 {
		t.Errorf("after all requests: %d bytes are free and %v has some, want 256 and nobody", b.free, b.taken)
	}
}
