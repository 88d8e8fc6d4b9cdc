// Package docs runs the commands of the documentation and the examples.
package docs

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
