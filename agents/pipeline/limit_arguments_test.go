package pipeline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestAllowRaisesLimit(t *testing.T) {
	t.Parallel()
	asked := map[string]LimitArguments{
		LimitTokens:       NewLimitArguments(LimitTokens, 1200, 2200),
		LimitTurns:        NewLimitArguments(LimitTurns, 2, 4),
		LimitCost:         NewLimitArguments(LimitCost, 2_000_000, 3_500_000),
		LimitDuration:     NewLimitArguments(LimitDuration, int64(5*time.Minute), int64(10*time.Minute)),
		LimitTokensPerDay: NewLimitArguments(LimitTokensPerDay, 1200, 2200),
		LimitCostPerDay:   NewLimitArguments(LimitCostPerDay, 2_000_000, 3_500_000),
	}
	for _, c := range []struct {
		limit, edited, want string
		wantAmount          int64
		wantErr             string
	}{
		{LimitTokens, `50000`, `{"limit":"tokens","used":1200,"allowed":50000}`, 50_000, ""},
		{LimitTokens, `1201`, `{"limit":"tokens","used":1200,"allowed":1201}`, 1201, ""},
		{LimitTokens, `1200`, "", 0, "more than the 1200"},
		{LimitTokens, `-1`, "", 0, "more than the 1200"},
		{LimitTokens, `"50000"`, "", 0, "whole number"},
		{LimitTokens, `5e4`, "", 0, "whole number"},
		{LimitTokens, `9007199254740993`, "", 0, "whole number"},
		{LimitTokens, `99999999999999999999`, "", 0, "whole number"},
		{LimitTokens, `null`, "", 0, "whole number"},
		{LimitTokens, ``, "", 0, "whole number"},
		{LimitTurns, `3`, `{"limit":"turns","used":2,"allowed":3}`, 3, ""},
		{LimitCost, `"12.50"`, `{"limit":"cost","used":2,"allowed":12.5}`, 12_500_000, ""},
		{LimitCost, `12.5`, `{"limit":"cost","used":2,"allowed":12.5}`, 12_500_000, ""},
		{LimitCost, `2.0`, "", 0, "more than the 2"},
		{LimitCost, `"much"`, "", 0, "an amount"},
		{LimitCost, `null`, "", 0, "an amount"},
		{LimitDuration, `"20m"`, `{"limit":"duration","used":"5m0s","allowed":"20m0s"}`, int64(20 * time.Minute), ""},
		{LimitDuration, `"300s"`, "", 0, "more than the 5m0s"},
		{LimitDuration, `20`, "", 0, "a duration"},
		{LimitDuration, `null`, "", 0, "a duration"},
		{LimitTokensPerDay, `1500`, `{"limit":"tokensPerDay","used":1200,"allowed":1500}`, 1500, ""},
		{LimitCostPerDay, `"3"`, `{"limit":"costPerDay","used":2,"allowed":3}`, 3_000_000, ""},
	} {
		f, n, err := asked[c.limit].Allow(json.RawMessage(c.edited))
		if c.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%s of %s: %v, want %q", c.edited, c.limit, err, c.wantErr)
			}
			continue
		}
		got, _ := json.Marshal(f)
		if err != nil || n != c.wantAmount || string(got) != c.want {
			t.Errorf("Allow %s of %s: got %s, %d (%v), want %s, %d", c.edited, c.limit, got, n, err, c.want, c.wantAmount)
		}
	}
	if _, _, err := (LimitArguments{}).Allow(json.RawMessage(`5`)); err == nil {
		t.Error("Allow without a limit: got no error, want one")
	}
}
