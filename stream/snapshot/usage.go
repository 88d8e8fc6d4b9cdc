package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure/agui"
)

// EstimatedUsage is the estimated part of a usage: that of model calls whose answer was cut before
// the provider reported its usage. The usage that it is a part of includes it.
type EstimatedUsage struct {
	// Calls is the number of those calls.
	Calls int64 `json:"calls"`
	// Usage has one entry for each provider and model.
	Usage []agui.TokenUsage `json:"usage,omitempty"`
}

// metadataEstimated is the key of an EstimatedUsage in the metadata of a run's last event.
const metadataEstimated = "perdure.usage.estimated"

// Put writes the estimated part into the metadata of a run's last event; it writes nothing if no
// call was cut. metadata must not be nil.
func (e EstimatedUsage) Put(metadata agui.Metadata) error {
	if e.Calls == 0 {
		return nil
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("snapshot: encode estimated usage: %w", err)
	}
	metadata[metadataEstimated] = body
	return nil
}

// estimatedIn returns the estimated part from the metadata of a run's last event; zero = there is
// none.
func estimatedIn(metadata agui.Metadata) (e EstimatedUsage) {
	if body := metadata[metadataEstimated]; body != nil {
		_ = json.Unmarshal(body, &e)
	}
	return e
}

// addUsage returns the sum of two usages, with one entry for each provider and model. It changes
// neither.
func addUsage(total, added []agui.TokenUsage) []agui.TokenUsage {
	total = slices.Clone(total)
	for _, u := range added {
		i := slices.IndexFunc(total, func(k agui.TokenUsage) bool { return k.Provider == u.Provider && k.Model == u.Model })
		if i < 0 {
			u.Unknown = nil
			total = append(total, u)
			continue
		}
		sum := &total[i]
		if (sum.TotalTokens == nil) != (u.TotalTokens == nil) { // calls that were cut have none, and some providers report none
			sum.TotalTokens, u.TotalTokens = totalTokens(*sum), totalTokens(u)
		}
		for _, count := range []struct{ to, from **int64 }{
			{&sum.InputTokens, &u.InputTokens},
			{&sum.OutputTokens, &u.OutputTokens},
			{&sum.TotalTokens, &u.TotalTokens},
			{&sum.ReasoningTokens, &u.ReasoningTokens},
			{&sum.CachedInputTokens, &u.CachedInputTokens},
			{&sum.CacheWriteInputTokens, &u.CacheWriteInputTokens},
		} {
			*count.to = sumCounts(*count.to, *count.from)
		}
	}
	return total
}

// totalTokens returns the total of an entry, or the sum of its input and output if it has none.
func totalTokens(u agui.TokenUsage) *int64 {
	if u.TotalTokens != nil {
		return u.TotalTokens
	}
	return sumCounts(u.InputTokens, u.OutputTokens)
}

// sumCounts returns the sum of two counts; nil = unknown. An unknown count is left out of the sum.
func sumCounts(a, b *int64) *int64 {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	sum := *a + *b
	return &sum
}
