package budget

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/stream/streamtest"
)

// TestSoftBudget: a soft budget is used up when its amount is reached. An extension that people
// allow counts on its day, and the hard budget bounds it.
func TestSoftBudget(t *testing.T) {
	t.Parallel()
	f, err := parse([]byte("currency: EUR\ntenants: {acme: {tokensPerDay: 250, costPerDay: 1, soft: {tokensPerDay: 100, costPerDay: 0.3}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), streamtest.Open(t), Day{Soft: AmountsOf(10, 0)}, f)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 31, 23, 0, 0, 0, time.FixedZone("", -3600)) // midnight is in UTC
	l.Now = func() time.Time { return now }
	const today = "2026-02-01"
	check := func(tenant string, allowed *Allowed, want *Excess) {
		t.Helper()
		if x, err := l.Check(t.Context(), tenant, allowed); err != nil || !cmp.Equal(x, want) {
			t.Errorf("%s, allowed %+v: %+v, want %+v: %v", tenant, allowed, x, want, err)
		}
	}
	use := func(call string, tokens int64, cost agents.Money) {
		t.Helper()
		for _, tenant := range []string{"acme", "other"} {
			if err := l.Count(t.Context(), tenant, call, Use{Tokens: tokens, Cost: cost}); err != nil {
				t.Fatal(err)
			}
		}
	}
	use("1", 99, 200_000)
	check("acme", &Allowed{}, nil)
	check("other", &Allowed{}, &Excess{Date: today, Used: 99, Allowed: 109}) // no hard budget bounds it
	use("2", 1, 200_000)
	tokens := &Excess{Date: today, Used: 100, Allowed: 200}
	check("acme", &Allowed{}, tokens)
	check("acme", nil, nil)
	check("acme", &Allowed{Date: "2026-01-31", Tokens: 200, Cost: 900_000}, tokens)
	check("acme", &Allowed{Date: today, Tokens: 200}, &Excess{Date: today, Money: true, Used: 400_000, Allowed: 700_000})
	check("acme", &Allowed{Date: today, Tokens: 200, Cost: 400_001}, nil)
	use("3", 100, 0)
	check("acme", &Allowed{Date: today, Tokens: 200, Cost: 400_001}, &Excess{Date: today, Used: 200, Allowed: 250})
	use("4", 50, 0)
	if x, err := l.Check(t.Context(), "acme", &Allowed{Date: today, Tokens: 250, Cost: 400_001}); !errors.Is(err, ErrExceeded) || x != nil {
		t.Errorf("Check of a used-up budget = %+v, %v, want %v", x, err, ErrExceeded)
	}
	now = now.Add(24 * time.Hour)
	check("acme", &Allowed{Date: today, Tokens: 250}, nil)
	if !l.Of("acme").LimitsCost() || l.Of("other").LimitsCost() || !(Day{Soft: AmountsOf(0, 1)}).LimitsCost() {
		t.Error("LimitsCost differs from the budgets, want true exactly for those with a cost")
	}
}
