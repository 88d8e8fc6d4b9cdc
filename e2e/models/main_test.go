// Package models tests model providers, hostile model servers, and the usage and budgets of model
// calls.
package models

import (
	"os"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
