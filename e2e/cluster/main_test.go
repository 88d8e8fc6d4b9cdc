// Package cluster tests the production processes: several APIs and workers, deploys with Worker
// Versioning, outages and full disks.
package cluster

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
