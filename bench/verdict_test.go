package main

import (
	"math"
	"testing"
)

func TestDifferenceIsBeyondNoiseIfRangesDoNotOverlap(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		base, head []float64
		ratio      float64
		beyond     bool
	}{
		{"all lower", []float64{10, 12, 11, 13, 12, 11}, []float64{5, 6, 5, 7, 6, 5}, 5.5 / 11.5, true},
		{"all higher", []float64{5, 6, 5, 7, 6, 5}, []float64{10, 12, 11, 13, 12, 11}, 11.5 / 5.5, true},
		{"one value overlaps", []float64{10, 12, 11, 13, 12, 11}, []float64{5, 6, 5, 10.5, 6, 5}, 5.5 / 11.5, false},
		{"ranges touch", []float64{10, 12, 11, 13, 12, 11}, []float64{5, 6, 5, 10, 6, 5}, 5.5 / 11.5, false},
		{"equal", []float64{12, 12, 12, 12, 12, 12}, []float64{12, 12, 12, 12, 12, 12}, 1, false},
		{"constant and lower", []float64{12, 12, 12, 12, 12, 12}, []float64{8, 8, 8, 8, 8, 8}, 8.0 / 12, true},
		{"too few rounds", []float64{10, 12, 11, 13, 12}, []float64{5, 6, 5, 7, 6}, 6.0 / 12, false},
		{"base is zero", []float64{0, 0, 0, 0, 0, 0}, []float64{5, 6, 5, 7, 6, 5}, 0, true},
		{"row is new", nil, []float64{5, 6, 5, 7, 6, 5}, 0, false},
	} {
		got := compareRounds(test.base, test.head)
		if math.Abs(got.Ratio-test.ratio) > 1e-9 || got.Beyond != test.beyond {
			t.Errorf("%s: ratio %v, beyond noise %v; want %v, %v", test.name, got.Ratio, got.Beyond, test.ratio, test.beyond)
		}
	}
}
