package archtest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/agents"
	"github.com/perdure/perdure/internal/approvals/webhook"
	"github.com/perdure/perdure/internal/auth/apikey"
	"github.com/perdure/perdure/internal/auth/principals"
	"github.com/perdure/perdure/internal/control/budget"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/control/retention"
	"github.com/perdure/perdure/internal/events/source"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestDefinitionsInTheDocumentationLoad: the code that reads definitions loads every YAML block of
// the documentation. A fragment of an agent is completed with a name and a model.
func TestDefinitionsInTheDocumentationLoad(t *testing.T) {
	t.Parallel()
	loaded := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range yamlBlock.FindAllStringSubmatch(string(text), -1) {
			if err := loadBlock(t, block[1]); err != nil {
				t.Errorf("%s: YAML block %d: %v", page, i+1, err)
			}
			loaded++
		}
	}
	if loaded < 30 {
		t.Errorf("number of blocks = %d, want at least 30", loaded)
	}
}

// loadBlock loads a definition of the documentation.
func loadBlock(t *testing.T, block string) error {
	t.Helper()
	file := write(t, block)
	first, _, _ := strings.Cut(regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(block, ""), ":")
	switch {
	case first == "keys":
		_, err := apikey.New(file).Load()
		return err
	case first == "approvers" || first == "services":
		known, err := principals.Open(file, slog.New(slog.DiscardHandler))
		if err == nil {
			known.Close()
		}
		return err
	case first == "default" && strings.Contains(block, "audit:"):
		_, err := retention.Parse([]byte(block))
		return err
	case first == "default":
		_, err := quota.Parse([]byte(block))
		return err
	case first == "currency" || first == "tenants":
		_, err := budget.Load(write(t, complete(block, "currency", "USD")))
		return err
	case strings.HasPrefix(block, "- name:") && regexp.MustCompile("\n  (webhook|nats):").MatchString(block):
		_, err := source.Open(file, nil)
		return err
	case strings.HasPrefix(block, "- name:") && strings.Contains(block, "\n  url:"):
		secret := base64.StdEncoding.EncodeToString(make([]byte, 32))
		_, err := webhook.Load(file, func(string) string { return secret })
		return err
	case first == "receivers", first == "apiVersion": // of OpenTelemetry's collector, of Kubernetes
		return yaml.Unmarshal([]byte(block), new(map[string]any))
	case first == "groups":
		return errors.Join(yaml.Unmarshal([]byte(block), new(map[string]any)), checkAlerts(block))
	case first == "name" || first == "kind":
	case strings.HasPrefix(block, "- "):
		block = "steps:\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(block, "  ")
		fallthrough
	default:
		block = complete(complete(complete(block, "model", "scripted/demo"), "tools", `["*"]`), "name", "part")
	}
	if _, err := agents.ParseFile("page.yaml", []byte(block)); err != nil {
		return fmt.Errorf("%w\n%s", err, block)
	}
	return nil
}

var metricName = regexp.MustCompile(`\b(?:perdure|gen_ai|http_server)_\w+?(?:_(?:count|sum|bucket))?\{`)

// checkAlerts checks that the reference of metrics has the metrics of Prometheus alerts.
func checkAlerts(block string) error {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		return err
	}
	used := metricName.FindAllString(block, -1)
	if len(used) == 0 {
		return errors.New("the alerts use no metric of Perdure")
	}
	for _, name := range used {
		name = regexp.MustCompile(`(_count|_sum|_bucket)?\{$`).ReplaceAllString(name, "")
		if !strings.Contains(string(page), "| `"+name+"` |") {
			return fmt.Errorf("metrics.md does not have %s", name)
		}
	}
	return nil
}

// complete adds a key to a block that does not have it.
func complete(block, key, value string) string {
	if regexp.MustCompile(`(?m)^` + key + `:`).MatchString(block) {
		return block
	}
	return key + ": " + value + "\n" + block
}

// write writes a block to a file, and returns its path.
func write(t *testing.T, block string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.yaml")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
