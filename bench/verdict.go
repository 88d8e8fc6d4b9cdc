package main

import (
	"math"
	"slices"
)

// minRounds is the smallest number of rounds in which a difference can be beyond noise: if two builds are
// equal, the ranges of 6 rounds each do not overlap in 1 of 462 rows. With 4 rounds it is 1 of 35, too
// many for a report of 60 rows.
const minRounds = 6

// verdict is the comparison of one row of two builds.
type verdict struct {
	Base   []float64 `json:"base"` // one value for each round
	Head   []float64 `json:"head"`
	Ratio  float64   `json:"ratio"`  // of the medians, head to base; 0 if it is not defined
	Beyond bool      `json:"beyond"` // whether the difference is beyond noise
}

// compareRounds compares the values of two builds. A difference is beyond noise if the ranges of the
// values do not overlap.
func compareRounds(base, head []float64) verdict {
	v := verdict{Base: base, Head: head}
	if len(base) == 0 || len(head) == 0 {
		return v
	}
	if r := median(head) / median(base); !math.IsNaN(r) && !math.IsInf(r, 0) {
		v.Ratio = r
	}
	v.Beyond = min(len(base), len(head)) >= minRounds &&
		(slices.Max(base) < slices.Min(head) || slices.Max(head) < slices.Min(base))
	return v
}
