package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// anything matches every package outside this repository.
const anything = "*"

// layer is a set of packages with the imports that they may have, in addition to the standard
// library.
type layer struct {
	packages string
	may      []string
}

var layers = []layer{
	{"agui", []string{"github.com/evanphx/json-patch/v5"}},
	{"internal/transport/eventsource", nil},
	{"client", []string{"agui", "internal/transport/eventsource", "github.com/cenkalti/backoff/v5"}},
	{"internal/equal", []string{anything}},
	{"internal/durations", nil},
	{"internal/exact", nil},
	{"internal/process/version", nil},
	{"internal/reference", []string{"go.yaml.in/yaml/v3", "github.com/spf13/...", "github.com/google/go-cmp/cmp"}},
	{"internal/starter", []string{"agents"}},
	{"internal/cli", []string{"internal/audit", "client", "agui", "agents", "internal/starter", "internal/process/version", "github.com/spf13/...", "golang.org/x/term"}},
	{"agui/protobuf", []string{"agui", "google.golang.org/protobuf/encoding/protowire"}},
	{"agui/remote", []string{"agui", "internal/transport/egress", "internal/transport/eventsource"}},

	{"llm", nil},
	{"llm/internal/...", []string{"llm"}},
	{"llm/scripted", []string{"llm"}},
	{"llm/anthropic", []string{"llm", "llm/internal/...", "github.com/anthropics/anthropic-sdk-go/..."}},
	{"llm/gemini", []string{"llm", "llm/internal/..."}},
	{"llm/openai", []string{"llm", "llm/internal/...", "github.com/openai/openai-go/v3/..."}},

	{"agents", []string{"agents/expression", "internal/durations", "go.yaml.in/yaml/v3", "github.com/google/cel-go/...", "github.com/google/jsonschema-go/...", "github.com/santhosh-tekuri/jsonschema/v6/...", "golang.org/x/text/..."}},
	{"agents/expression", []string{"github.com/google/cel-go/...", "github.com/hashicorp/golang-lru/v2"}},
	{"agents/pipeline", []string{"internal/durations", "agents", "agents/expression", "agui"}},
	{"agents/catalog", []string{"internal/durations", "internal/auth", "agents", "stream", "internal/index/watch", "github.com/nats-io/nats.go/..."}},
	{"internal/workers/assertion", []string{"tools", "github.com/go-jose/go-jose/v4/..."}},
	{"internal/secrets", []string{"tools", "llm", "internal/workers/assertion"}},
	{"tools/...", []string{"internal/durations", "internal/exact", "tools", "internal/secrets", "internal/transport/egress", "internal/workers/assertion", "llm", anything}},
	{"internal/transport/egress", []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/propagation"}},
	{"internal/auth", nil},
	{"internal/process/yamlfile", []string{"go.yaml.in/yaml/v3"}},
	{"internal/auth/apikey", []string{"internal/auth", "internal/process/filewatch", "internal/process/yamlfile", "go.yaml.in/yaml/v3"}},
	{"internal/auth/oidc", []string{"internal/auth", "github.com/coreos/go-oidc/v3/...", "golang.org/x/oauth2", "golang.org/x/sync/..."}},
	{"internal/auth/principals", []string{"internal/auth", "internal/process/filewatch", "internal/process/yamlfile", "go.yaml.in/yaml/v3"}},
	{"internal/auth/policy", []string{"internal/auth", "stream", "github.com/cedar-policy/cedar-go/..."}},
	{"internal/auth/sessions", []string{"internal/auth", "internal/auth/oidc", "internal/index/watch", "stream", "github.com/alexedwards/scs/v2/...", "github.com/nats-io/nats.go/...", "golang.org/x/oauth2", "golang.org/x/sync/..."}},
	{"internal/auth/callers", []string{"internal/auth/...", "internal/process/config", "internal/process/filewatch", "stream"}},
	{"stream", []string{"internal/durations", "agui", "internal/auth", "internal/exact", "github.com/nats-io/nats.go/..."}},
	{"stream/snapshot", []string{"agui", "stream", "internal/auth", "github.com/nats-io/nats.go/...", "github.com/hashicorp/golang-lru/v2"}},
	{"stream/trace", []string{"agents", "agui", "runs", "stream", "stream/snapshot"}},
	{"stream/view", []string{"agui", "stream", "stream/snapshot"}},

	{"internal/audit", []string{"internal/auth"}},
	{"internal/audit/store", []string{"stream", "internal/audit", "github.com/nats-io/nats.go/...", "github.com/hashicorp/golang-lru/v2", "go.opentelemetry.io/otel/log/..."}},
	{"internal/encryption", []string{"stream", "github.com/nats-io/nats.go/...", "github.com/hashicorp/golang-lru/v2", "github.com/tink-crypto/tink-go/v2/..."}},
	{"internal/encryption/operator", []string{"internal/encryption", "github.com/tink-crypto/tink-go/v2/...", "gocloud.dev/secrets/...", "github.com/hashicorp/vault/api"}},
	{"internal/files", []string{"stream", "internal/index/watch", "github.com/nats-io/nats.go/...", "github.com/minio/sio", "github.com/gabriel-vasile/mimetype", "golang.org/x/sync/singleflight"}},
	{"internal/files/bucket", []string{"stream", "gocloud.dev/...", "github.com/aws/aws-sdk-go-v2/service/s3/...", "cloud.google.com/go/storage"}},
	{"internal/files/clamd", []string{"stream"}},
	{"internal/index/watch", []string{"stream", "github.com/nats-io/nats.go/..."}},
	{"internal/approvals/inbox", []string{"internal/durations", "agents", "stream", "internal/index/watch", "github.com/nats-io/nats.go/..."}},
	{"internal/events", []string{"internal/durations", "runs", "stream", "internal/auth", "internal/process/telemetry", "internal/index/watch", "github.com/nats-io/nats.go/...", "internal/exact"}},
	{"internal/events/cloudevent", []string{"agui", "internal/events", "github.com/cloudevents/sdk-go/v2/..."}},
	{"internal/events/source", []string{"internal/durations", "agui", "internal/auth", "internal/events", "internal/events/cloudevent", "github.com/cloudevents/sdk-go/v2/event", "github.com/nats-io/nats.go/...", "internal/process/yamlfile", "go.yaml.in/yaml/v3", "github.com/standard-webhooks/standard-webhooks/..."}},
	{"internal/index/threads", []string{"stream", "internal/index/watch", "github.com/nats-io/nats.go/..."}},
	{"internal/approvals/links", []string{"stream", "github.com/nats-io/nats.go/..."}},
	{"internal/control/admission", []string{"llm", "stream", "internal/index/watch", "internal/process/telemetry", "github.com/nats-io/nats.go/...", "github.com/sony/gobreaker/v2"}},
	{"internal/control/budget", []string{"agents", "stream", "github.com/nats-io/nats.go/...", "internal/process/yamlfile", "go.yaml.in/yaml/v3"}},
	{"internal/control/usage", []string{"agents", "runs", "stream", "github.com/nats-io/nats.go/..."}},
	{"internal/control/quota", []string{"internal/auth", "internal/process/filewatch", "internal/process/yamlfile", "internal/process/telemetry", "go.yaml.in/yaml/v3", "github.com/hashicorp/golang-lru/v2", "golang.org/x/time/rate"}},
	{"internal/control/retention", []string{"internal/files", "stream", "internal/audit", "internal/audit/store", "internal/index/threads", "internal/process/filewatch", "internal/process/yamlfile", "internal/process/telemetry", "go.yaml.in/yaml/v3", "github.com/nats-io/nats.go/..."}},
	{"internal/approvals/webhook", []string{"internal/auth", "internal/approvals/inbox", "internal/secrets", "internal/transport/egress", "go.yaml.in/yaml/v3", "github.com/standard-webhooks/standard-webhooks/..."}},

	{"runs", []string{"agents", "agents/pipeline", "go.temporal.io/api/common/v1", "go.temporal.io/sdk/temporal", "go.temporal.io/sdk/converter"}},
	{"workflows", []string{
		"runs", "agui", "agents", "agents/pipeline", "go.temporal.io/api/...",
		"go.temporal.io/sdk/workflow", "go.temporal.io/sdk/temporal", "go.temporal.io/sdk/converter", "go.temporal.io/sdk/worker",
	}},
	{"internal/temporaltest", []string{"go.temporal.io/sdk/..."}},
	{"workflows/replaytest", []string{"workflows", "runs", "agents", "go.temporal.io/sdk/..."}},
	{"activities/prompt", []string{"agents", "agui", "agui/remote", "llm", "tools", "stream/snapshot"}},
	{"activities/relay", []string{"agui", "agui/remote", "runs", "stream"}},
	{"activities/narration", []string{"activities/prompt", "agents", "agents/catalog", "agui", "llm", "runs", "stream", "tools", "go.temporal.io/sdk/activity"}},
	{"activities", []string{"internal/events", "activities/prompt", "activities/narration", "activities/relay", "runs", "agui", "agui/remote", "internal/secrets", "agents/...", "llm", "tools", "stream", "stream/snapshot", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/audit", "internal/audit/store", "internal/control/budget", "internal/control/quota", "internal/control/dispatch", "internal/approvals/inbox", "internal/control/schedules", "internal/control/usage", "internal/approvals/webhook", "internal/process/telemetry", "internal/control/admission", "internal/files", anything}},
	{"api/problem", []string{"internal/control/quota", "agents", "agents/catalog", "agui", "stream", "internal/auth", "internal/auth/policy", "internal/approvals/inbox", "internal/control/schedules", "github.com/gin-gonic/gin"}},
	{"api/access", []string{"agents", "api/problem", "api/request", "internal/auth", "internal/auth/policy", "internal/index/threads", "stream", "github.com/gin-gonic/gin"}},
	{"api/request", []string{"internal/control/quota", "api/problem", "agui", "stream", "internal/auth", "internal/process/telemetry", "github.com/gin-gonic/gin"}},
	{"api/auditing", []string{"internal/audit/store", "api/problem", "api/request", "internal/audit", "internal/auth", "internal/process/telemetry", "github.com/gin-gonic/gin", "go.opentelemetry.io/otel/trace", "golang.org/x/time/rate"}},
	{"api/auditroutes", []string{"internal/audit/store", "api/access", "api/auditing", "api/problem", "api/request", "stream", "internal/audit", "internal/auth/policy", "github.com/gin-gonic/gin"}},
	{"api/agentroutes", []string{"internal/control/quota", "internal/audit", "internal/auth/policy", "api/access", "api/auditing", "api/problem", "api/request", "agents", "agents/catalog", "agui", "github.com/gin-gonic/gin", "github.com/aymanbagabas/go-udiff"}},
	{"api/scheduleroutes", []string{"internal/control/quota", "api/access", "api/problem", "api/request", "agents/catalog", "runs", "stream", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/control/schedules", "github.com/gin-gonic/gin", "golang.org/x/sync/errgroup", "go.temporal.io/...", "agui", "internal/files"}},
	{"api/eventroutes", []string{"api/access", "api/problem", "api/request", "internal/auth/policy", "internal/events", "stream", "github.com/cloudevents/sdk-go/v2/event", "github.com/gin-gonic/gin", "api/auditing", "internal/auth", "internal/control/quota", "internal/events/cloudevent", "internal/events/source", "agui"}},
	{"api/attachments", []string{"agui", "api/access", "api/problem", "api/request", "internal/auth/policy", "internal/control/quota", "internal/files", "stream"}},
	{"api/fileroutes", []string{"api/attachments", "api/auditing", "api/deletion", "api/problem", "api/request", "internal/audit", "internal/auth", "internal/auth/policy", "internal/control/quota", "internal/files", "stream", "github.com/gin-gonic/gin", "github.com/tus/tusd/v2/pkg/handler", "golang.org/x/exp/slog"}},
	{"api/usageroutes", []string{"api/access", "api/problem", "api/request", "internal/auth/policy", "internal/control/usage", "github.com/gin-gonic/gin"}},
	{"api/systemroutes", []string{"api/access", "api/problem", "api/request", "runs", "stream", "internal/auth/policy", "internal/process/version", "github.com/gin-gonic/gin", "golang.org/x/sync/errgroup", "go.temporal.io/..."}},
	{"api/sessionroutes", []string{"api/problem", "api/request", "internal/auth", "internal/auth/oidc", "internal/auth/sessions", "github.com/gin-gonic/gin"}},
	{"api/lookup", []string{"api/problem", "stream", "stream/snapshot", "internal/approvals/inbox"}},
	{"api/commands", []string{"api/attachments", "api/lookup", "api/problem", "api/request", "agui", "runs", "stream", "stream/snapshot", "internal/control/dispatch", "go.temporal.io/..."}},
	{"api/silence", []string{"api/lookup", "agui", "runs", "stream", "stream/trace", "internal/control/dispatch", "internal/control/usage", "go.temporal.io/..."}},
	{"api/stuck", []string{"stream", "internal/control/dispatch", "go.temporal.io/...", "golang.org/x/sync/errgroup", "google.golang.org/protobuf/types/known/timestamppb"}},
	{"api/decisions", []string{"internal/control/dispatch", "api/auditing", "api/commands", "api/lookup", "api/problem", "api/request", "agents", "agents/catalog", "agents/pipeline", "agui", "runs", "stream", "stream/snapshot", "internal/auth", "internal/auth/policy", "internal/approvals/inbox"}},
	{"api/streams", []string{"internal/control/quota", "api/problem", "api/request", "api/silence", "agui", "agui/protobuf", "stream", "stream/view", "internal/auth", "internal/auth/policy", "internal/process/telemetry", "internal/transport/live", "internal/transport/sse", "github.com/gin-gonic/gin", "golang.org/x/sync/semaphore"}},
	{"api/approvalroutes", []string{"internal/control/quota", "api/auditing", "internal/audit", "api/access", "api/decisions", "api/lookup", "api/problem", "api/request", "api/streams", "agents/pipeline", "agui", "runs", "stream", "stream/snapshot", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/approvals/inbox", "internal/approvals/links", "internal/process/telemetry", "internal/transport/sse", "github.com/gin-gonic/gin", "golang.org/x/sync/..."}},
	{"api/deletion", []string{"internal/events", "api/commands", "api/lookup", "api/problem", "api/silence", "stream", "stream/snapshot", "internal/audit/store", "internal/approvals/inbox", "internal/control/dispatch", "go.temporal.io/...", "api/attachments"}},
	{"api/threadroutes", []string{"agents", "internal/control/quota", "api/access", "api/commands", "api/deletion", "api/lookup", "api/problem", "api/request", "api/silence", "api/stuck", "agui", "runs", "stream", "stream/snapshot", "internal/auth", "internal/auth/policy", "internal/approvals/inbox", "internal/control/dispatch", "internal/index/threads", "github.com/gin-gonic/gin", "go.temporal.io/...", "api/attachments"}},
	{"api/subjectroutes", []string{"agui", "internal/approvals/inbox", "internal/audit/store", "api/access", "api/auditing", "api/deletion", "api/problem", "api/request", "stream", "stream/snapshot", "internal/audit", "internal/auth/policy", "internal/auth/sessions", "internal/control/schedules", "internal/index/threads", "github.com/gin-gonic/gin", "api/attachments", "internal/files"}},
	{"api/sockets", []string{"internal/control/quota", "internal/auth", "api/auditing", "internal/audit", "api/access", "internal/auth/policy", "api/commands", "api/decisions", "api/lookup", "api/problem", "api/request", "api/streams", "agui", "stream", "stream/view", "internal/process/telemetry", "internal/transport/socket", "internal/transport/sse", "github.com/gin-gonic/gin", "golang.org/x/sync/semaphore"}},
	{"internal/console", nil},
	{"api", []string{"internal/events", "internal/console", "internal/control/quota", "internal/audit/store", "internal/audit", "api/...", "runs", "agui", "agui/protobuf", "agents/...", "stream/...", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/auth/sessions", "internal/control/dispatch", "internal/approvals/inbox", "internal/approvals/links", "internal/control/schedules", "internal/control/usage", "internal/index/threads", "internal/transport/sse", "internal/transport/socket", "internal/transport/live", "internal/process/telemetry", "internal/process/version", "internal/files", "internal/events/source", anything}},

	{"internal/control/dispatch", []string{"runs", "agents/catalog", "stream", "stream/snapshot", "go.temporal.io/..."}},
	{"internal/control/schedules", []string{"agents", "agui", "stream", "runs", "internal/index/watch", "internal/auth", "internal/auth/principals", "github.com/nats-io/nats.go/...", "go.temporal.io/..."}},
	{"internal/transport/live", nil},
	{"internal/transport/sse", []string{"internal/transport/live"}},
	{"internal/transport/socket", []string{"internal/transport/live", "github.com/gorilla/websocket"}},
	{"internal/process/telemetry", []string{"runs", anything}},
	{"internal/workers/presence", []string{"runs", "stream", "internal/index/watch", anything}},
	{"internal/workers/announce", []string{"agents", "stream", "tools", "internal/index/watch", "internal/workers/assertion", anything}},
	{"internal/workers/models", []string{"agents", "internal/secrets", "internal/transport/egress", "llm/..."}},
	{"internal/process/apinode", []string{"internal/events", "internal/console", "internal/process/version", "internal/control/quota", "internal/control/retention", "internal/process/filewatch", "internal/audit/store", "internal/audit", "api/...", "agents/...", "stream", "stream/snapshot", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/auth/sessions", "internal/workers/announce", "internal/approvals/inbox", "internal/approvals/links", "internal/control/schedules", "internal/control/usage", "internal/index/threads", "internal/index/watch", "internal/files", "internal/events/source", "internal/control/admission", "internal/process/telemetry", anything}},
	{"internal/process/workernode", []string{"internal/events", "agui/remote", "internal/secrets", "internal/transport/egress", "internal/index/threads", "activities", "internal/audit", "internal/audit/store", "internal/auth", "internal/auth/policy", "internal/auth/principals", "workflows", "runs", "agents/...", "llm", "tools/...", "stream", "stream/snapshot", "internal/workers/announce", "internal/workers/assertion", "internal/control/budget", "internal/control/quota", "internal/control/dispatch", "internal/approvals/inbox", "internal/workers/presence", "internal/control/schedules", "internal/control/usage", "internal/process/version", "internal/workers/toolset", "internal/approvals/webhook", "internal/control/admission", "internal/files", "internal/events/source", anything}},
	{"internal/workers/toolset", []string{"agents", "internal/secrets", "tools/...", "internal/workers/assertion"}},
	{"internal/process/config", []string{"agents", "stream", "internal/control/admission", "internal/auth", "internal/auth/policy", "internal/auth/principals", "internal/encryption", "internal/process/version", "internal/secrets", "internal/workers/assertion", anything}},
	{"internal/process/filewatch", nil},
	{"internal/process/certificates", []string{"internal/process/config", "internal/process/filewatch"}},
	{"internal/process/memory", nil},
	{"internal/process/metricserver", []string{"internal/process/config"}},
	{"internal/process/connect", []string{"internal/files/...", "internal/encryption/...", "internal/process/config", "stream", anything}},
	{"internal/process/devserver", []string{"internal/process/version", "runs", anything}},
	{"internal/process/temporalui", []string{"internal/auth", "github.com/labstack/echo/v4", "github.com/temporalio/ui-server/v2/..."}},
	{"internal/archtest", nil},

	{"worker", []string{"activities", "workflows", "runs", "agents/...", "tools/...", "stream", "stream/snapshot", "internal/...", anything}},

	{"cmd/...", []string{module + "/...", anything}},
	{"e2e/...", []string{module + "/...", anything}},
	{"examples/...", []string{module + "/...", anything}},
}

func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for _, breach := range load(t).breaches(layers) {
		t.Error(breach)
	}
}

// breaches describes every import that no layer allows, one sentence each.
func (g graph) breaches(layers []layer) []string {
	var list []string
	for _, path := range g.matching(module + "/...") {
		at := slices.IndexFunc(layers, func(l layer) bool { return matches(l.packages, path) })
		if at < 0 {
			list = append(list, fmt.Sprintf("%s has no place among the layers: give it one", path))
			continue
		}
		for _, imported := range g[path].Imports {
			if !g.allowed(layers[at], imported) {
				list = append(list, fmt.Sprintf("%s imports %s, which its layer does not allow", path, imported))
			}
		}
	}
	return list
}

// allowed reports whether a layer may import a package.
func (g graph) allowed(l layer, imported string) bool {
	p, ok := g[imported]
	if !ok || p.Standard { // not in the list of packages: "C" and "unsafe"
		return true
	}
	return slices.ContainsFunc(l.may, func(pattern string) bool {
		return pattern == anything && !p.own() || matches(pattern, imported)
	})
}

// never forbids that a package depends on another one, directly or through other packages.
type never struct {
	from, to string
	because  string
}

var nevers = []never{
	{"workflows", "activities", "workflows decide, activities do"},
	{"workflows", "stream", "content is none of a workflow's business"},
	{"workflows", "api", "imports point down"},
	{"api/...", "activities", "both know only what passes between them, which is runs"},
	{"api/...", "workflows", "both know only what passes between them, which is runs"},
	{"activities", "workflows", "both know only what passes between them, which is runs"},
	{"runs", "stream", "content is none of a workflow's business"},
	{"api/...", "llm/...", "the api knows no model"},
	{"api/...", "tools/...", "the api knows no tool"},
	{"stream/...", "workflows", "imports point down"},
	{"stream/...", "github.com/tink-crypto/tink-go/...", "the log knows no algorithm"},
	{"stream/...", "gocloud.dev/...", "the log knows no key service"},

	{"cmd/api", "go.temporal.io/server/...", "production binaries link no server"},
	{"cmd/api", "github.com/nats-io/nats-server/...", "production binaries link no server"},
	{"cmd/api", "github.com/temporalio/ui-server/...", "production binaries link no server"},
	{"cmd/api", "github.com/openai/openai-go/...", "the api calls no model"},
	{"cmd/api", "github.com/anthropics/anthropic-sdk-go/...", "the api calls no model"},
	{"cmd/api", "activities", "the api does nothing"},
	{"cmd/worker", "go.temporal.io/server/...", "production binaries link no server"},
	{"cmd/worker", "github.com/nats-io/nats-server/...", "production binaries link no server"},
	{"cmd/worker", "github.com/temporalio/ui-server/...", "production binaries link no server"},
	{"cmd/worker", "api", "the worker serves nothing"},
	{"cmd/...", "go.uber.org/goleak", "test libraries stay in tests"},
	{"cmd/...", "github.com/google/go-cmp/...", "test libraries stay in tests"},
	{"cmd/...", "stream/streamtest", "test kits stay in tests"},
	{"cmd/...", "llm/llmtest", "test kits stay in tests"},
	{"cmd/...", "workflows/replaytest", "test kits stay in tests"},
}

func TestForbiddenDependencies(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, n := range nevers {
		from := g.matching(n.from)
		if len(from) == 0 {
			t.Errorf("the rule names %s, which does not exist", n.from)
		}
		for _, path := range from {
			if chain := g.chain(path, n.to); chain != nil {
				t.Errorf("%s must not depend on %s (%s), but does: %s", path, n.to, n.because, strings.Join(chain, " → "))
			}
		}
	}
}

// TestWorkflowsImportNothingNondeterministic: workflows are replayed, so they must not read
// anything that differs between two executions. The SDK that they import may, so only their own
// imports count. workflowcheck checks the functions that they call.
func TestWorkflowsImportNothingNondeterministic(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, path := range g.matching("workflows/...") {
		for _, imported := range g[path].Imports {
			for _, outside := range []string{"net", "net/http", "os", "os/...", "math/rand/...", "crypto/rand", "log/..."} {
				if matches(outside, imported) {
					t.Errorf("%s imports %s, which is not the same at a replay", path, imported)
				}
			}
		}
	}
}

func TestLogDoesNotImportHTTP(t *testing.T) {
	t.Parallel()
	g := load(t)
	for _, path := range g.matching("stream/...") {
		if slices.Contains(g[path].Imports, "net/http") {
			t.Errorf("%s imports net/http: the log must not depend on its transport", path)
		}
	}
}

func TestEmbeddedServersStayInPrograms(t *testing.T) {
	t.Parallel()
	g := load(t)
	programs := []string{"cmd/perdure", "e2e/...", "internal/process/devserver"}
	for _, path := range g.matching(module + "/...") {
		if slices.ContainsFunc(programs, func(pattern string) bool { return matches(pattern, path) }) {
			continue
		}
		if chain := g.chain(path, "internal/process/devserver"); chain != nil {
			t.Errorf("only programs may embed servers, but: %s", strings.Join(chain, " → "))
		}
	}
}

// TestBreachesAreFound: the checker reports imports that the rules forbid.
func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	ours := &struct{ Path string }{module}
	theirs := &struct{ Path string }{"example.com/lib"}
	g := graph{
		module + "/api":           {ImportPath: module + "/api", Module: ours, Imports: []string{module + "/stream", "example.com/lib"}},
		module + "/stream":        {ImportPath: module + "/stream", Module: ours, Imports: []string{"os", "example.com/lib"}},
		module + "/stranger":      {ImportPath: module + "/stranger", Module: ours},
		"example.com/lib":         {ImportPath: "example.com/lib", Module: theirs, Imports: []string{"example.com/server/deep"}},
		"example.com/server/deep": {ImportPath: "example.com/server/deep", Module: theirs},
		"os":                      {ImportPath: "os", Standard: true},
	}
	got := g.breaches([]layer{{"api", []string{"stream", anything}}, {"stream", nil}})
	if len(got) != 2 || !strings.Contains(got[0], "stranger has no place") || !strings.Contains(got[1], "stream imports example.com/lib") {
		t.Errorf("breaches = %q, want the two of the example", got)
	}
	want := []string{module + "/api", "example.com/lib", "example.com/server/deep"}
	if chain := g.chain(module+"/api", "example.com/server/..."); !slices.Equal(chain, want) {
		t.Errorf("chain = %q, want %q", chain, want)
	}
	if chain := g.chain(module+"/stranger", "example.com/..."); chain != nil {
		t.Errorf("chain of an unknown package = %q, want none", chain)
	}
}
