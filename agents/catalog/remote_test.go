package catalog_test

import (
	"errors"
	"testing"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/agents/catalog"
)

// TestRemoteAgentsAreRefused: no definition that workers cannot execute gets into the catalog.
func TestRemoteAgentsAreRefused(t *testing.T) {
	t.Parallel()
	ctx, node := open(t)
	c := node()
	d := &agents.Definition{Name: "a", Remote: &agents.Remote{URL: "https://agents.example.com/a"}}
	_, published := c.Publish(ctx, d, false)
	_, put := c.Put(ctx, "", d, nil, "", acceptAny)
	_, draft := c.PutDraft(ctx, "", d, nil)
	for name, err := range map[string]error{"publish": published, "put": put, "draft": draft} {
		var mistake *agents.DefinitionError
		if !errors.As(err, &mistake) || mistake.Key != "remote" {
			t.Errorf("%s: %v, want a mistake of remote", name, err)
		}
	}
	if _, err := c.Current("", "a"); !errors.Is(err, catalog.ErrUnknownAgent) {
		t.Errorf("current definition: %v, want none", err)
	}
}
