package budget

import "github.com/perdure/perdure/agents"

// Allowed is the approval to exceed the soft budget of a tenant: the run may continue
// until the tenant's total of the day reaches these amounts. It is valid on one day; on another day
// it counts as zero.
type Allowed struct {
	Date   string // in UTC, as of [time.DateOnly]
	Tokens int64
	Cost   agents.Money
}

// Excess is a soft budget that is used up: the amounts of the limit interrupt that asks approvers.
// They are tokens, or millionths of the currency if Money is true.
type Excess struct {
	// Date is the day, in UTC, as of [time.DateOnly].
	Date  string
	Money bool
	// Used is the tenant's total of the day.
	Used int64
	// Allowed is the total up to which the run may continue if approvers approve it: Used plus the
	// soft budget, but at most the hard budget.
	Allowed int64
}
