package runs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func count(n int64) *int64 { return &n }

// TestUsageOfManyModelsFitsWhereItIsCarried: a run carries its usage in its payloads, in at most 4
// KiB.
func TestUsageOfManyModelsFitsWhereItIsCarried(t *testing.T) {
	t.Parallel()
	const most = 1 << 40
	var sum []Usage
	for i := range 20 {
		u := Usage{
			Provider: "openai-responses", Model: fmt.Sprintf("%0128d", i), Input: count(most), Output: count(most), Total: count(most),
			Reasoning: count(most), CachedInput: count(most), CacheWrite: count(most), Cost: count(most), Calls: 1,
			Estimated: &Estimate{Calls: 1, Input: most, Output: most, Cost: most},
		}
		sum = addUsage(addUsage(sum, u), u)
	}
	body, err := json.Marshal(sum)
	if err != nil || len(body) > 4<<10 || len(sum) != MaxUsages+1 {
		t.Errorf("%d entries take %d bytes: %v", len(sum), len(body), err)
	}
	if tokens, calls := Estimated(sum); calls != 40 || tokens != 80*most {
		t.Errorf("%d tokens of %d calls are estimated", tokens, calls)
	}
}

// TestTotalOfUsageCountsAnswersWithoutOne: a model may report the total of some answers only. The
// sum includes all answers.
func TestTotalOfUsageCountsAnswersWithoutOne(t *testing.T) {
	t.Parallel()
	reported := Usage{Model: "m", Input: count(10), Output: count(2), Total: count(12), Calls: 1}
	cut := Usage{Model: "m", Input: count(5), Output: count(1), Calls: 1, Estimated: &Estimate{Calls: 1, Input: 5, Output: 1}}
	for name, usage := range map[string][]Usage{"reported first": {reported, cut}, "cut first": {cut, reported}} {
		sum := Sum(usage)
		if len(sum) != 1 || Tokens(sum) != 18 || *sum[0].Total != 18 || sum[0].Calls != 2 || sum[0].Estimated.Calls != 1 {
			body, _ := json.Marshal(sum)
			t.Errorf("%s: the sum is %s", name, strings.TrimSpace(string(body)))
		}
	}
	if *reported.Total != 12 || cut.Total != nil {
		t.Error("Add changes its argument")
	}
}
