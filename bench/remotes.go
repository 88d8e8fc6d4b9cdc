package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// remotes measures runs of a remote agent in perdure dev, and in turns with them runs of the same agent
// that is asked directly: first n single runs, then 50 clients with paced runs.
func remotes(ctx context.Context, s *site, n int) (err error) {
	agent, base, err := spawnRole(ctx, s.bench.dir, "agent", []string{"OPENAI_BASE_URL=" + s.bench.modelURL, "OPENAI_API_KEY=bench"}, s.bench.self, "proxy")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.stop()) }()
	for _, p := range []pace{instant, paced} {
		if err := s.publishRemote(ctx, "remote-"+string(p), base+"/v1/agents/"+string(p)+"/runs"); err != nil {
			return err
		}
	}
	durable := s.target
	durable.path = func(p pace) string { return "/v1/agents/remote-" + string(p) + "/runs" }
	ways := []struct {
		name string
		load *load
	}{{"directly", &load{target: agentTarget(base)}}, {"as a remote agent", &load{target: durable}}}

	single := phase{pace: instant, concurrency: 1}
	first := make([]sample, len(ways))
	for i := range n + n/5 {
		for j, w := range ways {
			one, err := w.load.drive(ctx, single, 1)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if i >= n/5 { // the first ones warm up
				first[j].add(one)
			}
		}
	}
	for j, w := range ways {
		s.quantiles("first token, "+w.name, first[j].first)
	}
	streaming := phase{pace: paced, concurrency: 50, spread: waveInterval}
	for _, w := range ways {
		total, err := w.load.drive(ctx, streaming, max(50, n))
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		s.quantiles("added per token at 50 streams, "+w.name, total.added)
	}
	return nil
}

// publishRemote publishes a remote agent.
func (s *site) publishRemote(ctx context.Context, name, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body := fmt.Appendf(nil, `{"name":%q,"remote":{"url":%q}}`, name, url)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.target.base+"/v1/agents/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // nothing depends on the error
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("publish %s: %s", name, resp.Status)
	}
	return nil
}
