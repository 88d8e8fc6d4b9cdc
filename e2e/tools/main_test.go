// Package tools tests tools that definitions declare, and tools on task queues of their own.
package tools

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
