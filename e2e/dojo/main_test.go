// Package dojo tests the pages of examples/dojo in a browser.
package dojo

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.MainAlone(m)) }
