package cluster

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// TestWorkerRefusesFiringBeyondQuota: a worker reads the file of quotas. It starts no run of a
// schedule whose tenant has as many waiting threads as the file allows.
func TestWorkerRefusesFiringBeyondQuota(t *testing.T) {
	t.Parallel()
	c := kit.SetupCluster(t)
	quotas := filepath.Join(t.TempDir(), "quotas.yaml")
	if err := os.WriteFile(quotas, []byte("default: {waitingThreads: 1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Env = []string{"PERDURE_QUOTAS_FILE=" + quotas}
	a := c.StartAPI(t)
	c.StartWorker(t)
	prompt, news := kit.Marked("Calculate, please."), kit.Marked("What is new?")
	kit.ScriptCalculations(t, prompt, kit.Marked("Done."), "7*6")
	waiting := a.FollowAgent(t, kit.CarefulPath, kit.NewInput(prompt))
	waiting.Finish(t)
	resp, err := a.Post(t.Context(), "/v1/schedules", map[string]any{
		"id": "bounded", "agent": "assistant", "cron": []string{"@yearly"}, "input": map[string]any{"messages": []any{map[string]any{"role": "user", "content": news}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("schedule: got %s, want %d", resp.Status, http.StatusCreated)
	}
	if resp, err = a.Post(t.Context(), "/v1/schedules/bounded/trigger", nil); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	awaitFiring(t, a, "bounded")
	if resp, err = a.Get(t.Context(), "/v1/audit?action=schedule.fire", ""); err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(body), `"code":"quota_exceeded"`) {
		t.Errorf("entry of the firing = %s (%v), want quota_exceeded", body, err)
	}
	if calls := kit.SharedModel.Calls(t, news); len(calls) > 0 {
		t.Errorf("calls of the model = %d, want none", len(calls))
	}
	waiting.Approve(t)
}
