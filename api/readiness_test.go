package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.temporal.io/sdk/client"
)

// CheckHealth implements client.Client: Temporal is healthy.
func (s *temporalStub) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return &client.CheckHealthResponse{}, nil
}

// TestProbesShareReadinessCheck: however many clients probe a node, it writes to the log about once
// a second.
func TestProbesShareReadinessCheck(t *testing.T) {
	t.Parallel()
	node := setup(t)
	var probes sync.WaitGroup
	for range 10 {
		probes.Go(func() {
			for range 50 {
				if status := statusAt(t, http.MethodGet, node.http.URL+"/readyz"); status != http.StatusOK {
					t.Errorf("/readyz: status = %d, want %d", status, http.StatusOK)
				}
			}
		})
	}
	probes.Wait()
	js, err := jetstream.New(node.log.Conn())
	if err != nil {
		t.Fatal(err)
	}
	list := js.ListStreams(node.ctx())
	writes := uint64(0)
	for info := range list.Info() {
		if strings.HasSuffix(info.Config.Name, "_ready") {
			writes = info.State.LastSeq
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	if writes == 0 || writes > 10 {
		t.Errorf("writes for 500 probes = %d, want 1 to 10", writes)
	}
}
