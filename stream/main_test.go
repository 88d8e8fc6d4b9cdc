package stream_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/stream/streamtest"
)

// The test's program is also the nodes of its clusters, which are processes so that they can be killed.
func TestMain(m *testing.M) {
	if options := os.Getenv(nodeOptions); options != "" {
		serveNode(options)
		return
	}
	goleak.VerifyTestMain(m, streamtest.Leaks())
}
