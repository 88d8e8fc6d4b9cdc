package config_test

import (
	"flag"
	"testing"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/internal/reference"
)

var update = flag.Bool("update", false, "rewrite docs/reference/configuration.md instead of comparing it")

func TestReference(t *testing.T) {
	t.Parallel()
	reference.Check(t, "../../../docs/reference/configuration.md", "variables", config.Markdown(), *update)
}
