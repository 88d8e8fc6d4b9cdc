// Package copilotkit tests front ends: CopilotKit with Perdure's runner, with the runtime in a process of
// its own and pages in Chromium, and assistant-ui.
package copilotkit

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
