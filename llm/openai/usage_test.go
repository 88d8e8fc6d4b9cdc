package openai

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/responses"

	"github.com/perdure/perdure/llm"
)

// FuzzResponseUsage compares the counts of a usage object of the Responses API with those that the
// types of the SDK read.
func FuzzResponseUsage(f *testing.F) {
	for _, seed := range []string{
		`{"input_tokens":5,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":7}`,
		`{"input_tokens":"5","input_tokens_details":[],"output_tokens":-2,"output_tokens_details":"x","total_tokens":7.9}`,
		`{"input_tokens":{},"input_tokens_details":{"cached_tokens":null},"output_tokens":true,"output_tokens_details":null,"total_tokens":9007199254740993}`,
		`null`, `{}`, `[]`, `5`, `"x"`, `true`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		if isAmbiguous(data) {
			return // the SDK reads it in another way
		}
		var sdk *responses.ResponseUsage
		var own *responseUsage
		wantErr, err := json.Unmarshal([]byte(data), &sdk), json.Unmarshal([]byte(data), &own)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error = %v, of the SDK %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if (own == nil) != (sdk == nil) {
			t.Fatalf("usage = %v, of the SDK %v", own, sdk)
		}
		if own == nil {
			return
		}
		want := llm.Usage{
			Input:       sdkCount(sdk.InputTokens, sdk.JSON.InputTokens),
			Output:      sdkCount(sdk.OutputTokens, sdk.JSON.OutputTokens),
			Total:       sdkCount(sdk.TotalTokens, sdk.JSON.TotalTokens),
			Reasoning:   sdkCount(sdk.OutputTokensDetails.ReasoningTokens, sdk.OutputTokensDetails.JSON.ReasoningTokens),
			CachedInput: sdkCount(sdk.InputTokensDetails.CachedTokens, sdk.InputTokensDetails.JSON.CachedTokens),
			CacheWrite:  sdkCount(sdk.InputTokensDetails.CacheWriteTokens, sdk.InputTokensDetails.JSON.CacheWriteTokens),
		}
		if diff := cmp.Diff(want, own.counts()); diff != "" {
			t.Errorf("usage (-SDK +got):\n%s", diff)
		}
	})
}
