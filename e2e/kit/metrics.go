package kit

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// MetricsEnv is the environment variable with which a process serves metrics.
const MetricsEnv = "PERDURE_METRICS_ADDR=127.0.0.1:0"

// AwaitMetrics waits until the metrics of a process have exactly the given series among those whose names
// begin with one of the prefixes. A series is a line of /metrics. The process needs MetricsEnv.
func (p *Perdure) AwaitMetrics(t *testing.T, prefixes []string, want ...string) {
	t.Helper()
	for late := time.Now().Add(WaitTimeout); ; {
		got, missing := p.series(t, prefixes), 0
		for _, series := range want {
			if !got[series] {
				missing++
			}
		}
		if missing == 0 && len(got) == len(want) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("metrics = %v, want %v", got, want)
		}
		<-time.After(50 * time.Millisecond) // poll interval
	}
}

// series returns the series whose names begin with one of the prefixes.
func (p *Perdure) series(t *testing.T, prefixes []string) map[string]bool {
	t.Helper()
	resp, err := http.Get("http://" + p.Addrs.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for line := range strings.Lines(string(body)) {
		for _, prefix := range prefixes {
			if strings.HasPrefix(line, prefix) {
				found[strings.TrimSpace(line)] = true
			}
		}
	}
	return found
}
