package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// amount is a quantity to measure. The user may set another number for it.
type amount struct {
	name  string
	title string
	full  int // number in a full measurement
	quick int
}

func namesOf(amounts []amount) string {
	names := make([]string, len(amounts))
	for i, a := range amounts {
		names[i] = a.name
	}
	return strings.Join(names, ",")
}

// parseAmounts reads "crowd=5000,parked": names, some with their own number.
func parseAmounts(option, text string, amounts []amount, quick bool) (map[string]int, error) {
	numbers := map[string]int{}
	for field := range strings.SplitSeq(text, ",") {
		if field == "" {
			continue
		}
		name, number, own := strings.Cut(field, "=")
		i := slices.IndexFunc(amounts, func(a amount) bool { return a.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-%s: there is no %q", option, name)
		}
		n := amounts[i].full
		if quick {
			n = amounts[i].quick
		}
		if own {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 1 {
				return nil, fmt.Errorf("-%s: %q is no number of %s", option, number, name)
			}
		}
		numbers[name] = n
	}
	return numbers, nil
}
