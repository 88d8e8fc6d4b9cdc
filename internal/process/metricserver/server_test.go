package metricserver_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/process/metricserver"
)

func TestMetricsAndProbes(t *testing.T) {
	t.Parallel()
	figures := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "runs 1\n") })
	s, err := metricserver.Start(t.Context(), "127.0.0.1:0", figures, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{}
	defer client.CloseIdleConnections()
	want := func(path string, status int, text string) {
		t.Helper()
		resp, err := client.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != status || text != "" && string(body) != text {
			t.Errorf("%s = %d %q, %v, want %d %q", path, resp.StatusCode, body, err, status, text)
		}
	}
	want("/metrics", http.StatusOK, "runs 1\n")
	want("/healthz", http.StatusOK, "ok\n")
	want("/readyz", http.StatusServiceUnavailable, "starting\n")
	s.SetReady(nil)
	want("/readyz", http.StatusOK, "ready\n")
	s.SetReady(http.NotFoundHandler())
	want("/readyz", http.StatusNotFound, "")
	want("/v1/agents", http.StatusNotFound, "")

	_, err = metricserver.Start(t.Context(), s.Addr(), figures, slog.New(slog.DiscardHandler))
	var bad *config.VariableError
	if !errors.As(err, &bad) || bad.Name != "PERDURE_METRICS_ADDR" {
		t.Errorf("address in use: got %v, want an error about PERDURE_METRICS_ADDR", err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

func TestNoServerByDefault(t *testing.T) {
	t.Parallel()
	s, err := metricserver.Start(t.Context(), "", nil, nil)
	s.SetReady(nil)
	if err != nil || s.Addr() != "" || s.Stop() != nil {
		t.Errorf("without an address: got %v, %v, want no server", s, err)
	}
}
