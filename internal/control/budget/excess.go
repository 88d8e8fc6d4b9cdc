package budget

import "github.com/perdure/perdure/agents"

// Allowed is how far people have let a run go beyond the soft budget of its tenant. It counts on
// one day.
type Allowed struct {
	Date   string // in UTC, as of [time.DateOnly]
	Tokens int64
	Cost   agents.Money
}

// Excess is a soft budget that is used up. Its figures are tokens or, of money, millionths of the
// currency.
type Excess struct {
	Date  string
	Money bool
	Used  int64
	// Allowed is how far a run may go if people let it: as much again as the soft budget, and no
	// further than the hard one.
	Allowed int64
}
