package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// pointer returns a pointer to a number.
func pointer(n int64) *int64 { return &n }

// TestUsageOfManyModelsIsBounded: a run carries its usage in its payloads, in at most 4
// KiB.
func TestUsageOfManyModelsIsBounded(t *testing.T) {
	t.Parallel()
	const most = 1 << 40
	var sum []Usage
	for i := range 20 {
		u := Usage{
			Provider: "openai-responses", Model: fmt.Sprintf("%0128d", i), Input: pointer(most), Output: pointer(most), Total: pointer(most),
			Reasoning: pointer(most), CachedInput: pointer(most), CacheWrite: pointer(most), Cost: pointer(most), Calls: 1,
			Estimated: &Estimate{Calls: 1, Input: most, Output: most, Cost: most},
		}
		sum = addUsage(addUsage(sum, u), u)
	}
	body, err := json.Marshal(sum)
	if err != nil || len(body) > 4<<10 || len(sum) != MaxUsages+1 {
		t.Errorf("usage: got %d entries in %d bytes (%v), want %d in at most %d", len(sum), len(body), err, MaxUsages+1, 4<<10)
	}
	if tokens, calls := Estimated(sum); calls != 40 || tokens != 80*most {
		t.Errorf("estimated usage: got %d tokens of %d calls, want %d of 40", tokens, calls, 80*most)
	}
}

// TestTotalCountsAnswersWithoutTotal: a model may report the total of some answers only. The
// sum includes all answers.
func TestTotalCountsAnswersWithoutTotal(t *testing.T) {
	t.Parallel()
	reported := Usage{Model: "m", Input: pointer(10), Output: pointer(2), Total: pointer(12), Calls: 1}
	cut := Usage{Model: "m", Input: pointer(5), Output: pointer(1), Calls: 1, Estimated: &Estimate{Calls: 1, Input: 5, Output: 1}}
	for name, usage := range map[string][]Usage{"reported first": {reported, cut}, "cut first": {cut, reported}} {
		sum := Sum(usage)
		if len(sum) != 1 || Tokens(sum) != 18 || *sum[0].Total != 18 || sum[0].Calls != 2 || sum[0].Estimated.Calls != 1 {
			body, _ := json.Marshal(sum)
			t.Errorf("%s: sum: got %s, want 18 tokens of 2 calls, 1 of them estimated", name, strings.TrimSpace(string(body)))
		}
	}
	if *reported.Total != 12 || cut.Total != nil {
		t.Errorf("arguments of Sum: got the totals %v and %v, want 12 and none", *reported.Total, cut.Total)
	}
}
