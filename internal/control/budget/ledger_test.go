package budget

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/stream/streamtest"
)

func TestWorkersShareDayBudget(t *testing.T) {
	t.Parallel()
	server := streamtest.Server(t)
	day := Day{Amounts: AmountsOf(100, 0)}
	var workers []*Ledger
	for range 2 { // two workers in separate processes
		l, err := Open(t.Context(), streamtest.OpenOn(t, server), day, nil)
		if err != nil {
			t.Fatal(err)
		}
		workers = append(workers, l)
	}
	var g sync.WaitGroup
	for i := range 33 {
		for _, l := range workers { // both report the same call
			g.Go(func() {
				if err := l.Count(t.Context(), "acme ü", fmt.Sprint("call", i), Use{Tokens: 3}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	g.Wait()
	l := workers[1]
	if u, _, err := l.read(t.Context(), key(l.today(), "acme ü")); err != nil || u.Tokens != 99 {
		t.Fatalf("%d tokens are counted, want 99: %v", u.Tokens, err)
	}
	if _, err := l.Check(t.Context(), "acme ü", nil); err != nil {
		t.Errorf("check with one token left: %v", err)
	}
	if err := workers[0].Count(t.Context(), "acme ü", "last", Use{Tokens: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Check(t.Context(), "acme ü", nil); !errors.Is(err, ErrExceeded) {
		t.Errorf("Check of a used-up budget = %v, want %v", err, ErrExceeded)
	}
	if _, err := l.Check(t.Context(), "other", nil); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	l.Now = func() time.Time { return time.Now().Add(24 * time.Hour) }
	if _, err := l.Check(t.Context(), "acme ü", nil); err != nil {
		t.Errorf("on the next day: %v", err)
	}
}

func TestTenantBudgetOverridesDefault(t *testing.T) {
	t.Parallel()
	f, err := parse([]byte("currency: EUR\ntenants: {acme: {costPerDay: 0.5}, free: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), streamtest.Open(t), Day{Amounts: AmountsOf(1, 0)}, f)
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"acme", "free", "other"} {
		if err := l.Count(t.Context(), tenant, "c", Use{Tokens: 10, Cost: 400_000}); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, exceeded := range map[string]bool{"acme": false, "free": false, "other": true} {
		if _, err := l.Check(t.Context(), tenant, nil); errors.Is(err, ErrExceeded) != exceeded {
			t.Errorf("%s: %v, want exceeded: %t", tenant, err, exceeded)
		}
	}
	if err := l.Count(t.Context(), "acme", "d", Use{Cost: 100_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Check(t.Context(), "acme", nil); !errors.Is(err, ErrExceeded) {
		t.Errorf("Check after the cost is used up = %v, want %v", err, ErrExceeded)
	}
}

func TestNoBudgetIsConfigured(t *testing.T) {
	t.Parallel()
	l, err := Open(t.Context(), nil, Day{}, &File{})
	if err != nil || l != nil {
		t.Fatalf("ledger without budgets = %v, %v, want nil", l, err)
	}
	x, err := l.Check(t.Context(), "a", &Allowed{})
	if err := errors.Join(err, l.Count(t.Context(), "a", "c", Use{Tokens: 1, Cost: 1})); x != nil || err != nil {
		t.Errorf("use of a nil ledger = %v, %v, want nothing", x, err)
	}
}
