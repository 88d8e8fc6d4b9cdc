// Package pipelines compares pipelines that are killed, cancelled, paused or continued with
// undisturbed ones.
package pipelines

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
