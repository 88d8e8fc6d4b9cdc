package budget

import (
	"errors"
)

// LimitsCost reports whether the budget has an amount of money. Then every model that runs use must
// have a price.
func (d Day) LimitsCost() bool { return d.Cost > 0 || d.Soft.Cost > 0 }

// Check refuses a soft amount that is not below the hard one: runs would end before approvers are
// asked.
func (d Day) Check() error {
	if d.Tokens > 0 && d.Soft.Tokens >= d.Tokens || d.Cost > 0 && d.Soft.Cost >= d.Cost {
		return errors.New("soft amounts must be less than the limits")
	}
	return nil
}

// excess returns the first soft amount that is used up, tokens before cost; nil = none. allowed is
// an earlier approval, which counts only if it is of the same date.
func (d Day) excess(date string, u usage, allowed Allowed) *Excess {
	if allowed.Date != date {
		allowed = Allowed{}
	}
	if x := excess(u.Tokens, d.Soft.Tokens, allowed.Tokens, d.Tokens); x != nil {
		x.Date = date
		return x
	}
	x := excess(int64(u.Cost), int64(d.Soft.Cost), int64(allowed.Cost), int64(d.Cost))
	if x != nil {
		x.Date, x.Money = date, true
	}
	return x
}

// excess compares one amount; nil = not used up. soft = 0 means no soft budget, hard = 0 no hard
// one.
func excess(used, soft, allowed, hard int64) *Excess {
	if soft == 0 || used < max(soft, allowed) {
		return nil
	}
	x := &Excess{Used: used, Allowed: used + soft}
	if hard > 0 {
		x.Allowed = min(x.Allowed, hard)
	}
	return x
}
