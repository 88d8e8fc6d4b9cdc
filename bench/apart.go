package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

// startApart returns the production shape on one machine: the API and the worker as separate
// processes, and their servers in a third process.
func startApart(ctx context.Context, e *environment) (*running, error) {
	r := &running{}
	err := r.startApart(ctx, e)
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// startApart starts the processes into r. After an error, some may run.
func (r *running) startApart(ctx context.Context, e *environment) error {
	agents, err := e.writeAgents()
	if err != nil {
		return err
	}
	p, line, err := spawnRole(ctx, e.dir, "servers", nil, filepath.Join(e.bin, "bench-servers"), filepath.Join(e.dir, "data"))
	if err != nil {
		return err
	}
	r.processes = append(r.processes, p)
	var where struct{ Temporal, Namespace, NATS string }
	if err := json.Unmarshal([]byte(line), &where); err != nil {
		return fmt.Errorf("servers: %w", err)
	}
	r.temporal, r.namespace = where.Temporal, where.Namespace
	addr, err := freePort()
	if err != nil {
		return err
	}
	r.metrics = map[string]string{}
	env := append(e.modelEnv(),
		"TEMPORAL_ADDRESS="+where.Temporal, "TEMPORAL_NAMESPACE="+where.Namespace, "NATS_URL="+where.NATS,
		"PERDURE_LOG_LEVEL=warn", "PERDURE_ADDR="+addr, "PERDURE_AGENTS="+agents)
	start := func(name, program string) (*process, error) {
		metrics, err := freePort()
		if err != nil {
			return nil, err
		}
		p, err := spawn(e.dir, name, append(slices.Clone(env), "PERDURE_METRICS_ADDR="+metrics), filepath.Join(e.bin, program))
		if err != nil {
			return nil, err
		}
		r.metrics[name] = "http://" + metrics + "/metrics"
		r.processes = append(r.processes, p)
		return p, nil
	}
	r.startWorker = func() (*process, error) { return start(fmt.Sprintf("worker-%d", len(r.processes)), "worker") }
	if _, err := start("worker", "worker"); err != nil {
		return err
	}
	api, err := start("api", "api")
	if err != nil {
		return err
	}
	r.target = agentTarget("http://" + addr)
	// A run that arrives before the worker waits for it; only the API must be ready.
	return api.await(ctx, func() bool { return answers(ctx, r.target.base+"/readyz") })
}

// ready waits until a process with metrics is ready.
func (r *running) ready(ctx context.Context, p *process) error {
	url := strings.TrimSuffix(r.metrics[p.name], "/metrics") + "/readyz"
	return p.await(ctx, func() bool { return answers(ctx, url) })
}

// dial connects to the system's Temporal.
func (r *running) dial(ctx context.Context) (client.Client, error) {
	return client.DialContext(ctx, client.Options{
		HostPort: r.temporal, Namespace: r.namespace, Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
}

// freePort returns an address on which no process listens at the moment.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // immediate
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
