package config_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/process/config"
	"github.com/perdure/perdure/stream"
)

// nowhere is a path without a file. It keeps the user's Temporal configuration file out of the
// tests.
const nowhere = "TEMPORAL_CONFIG_FILE=testdata/none.toml"

// load returns the configuration of valid settings.
func load(t *testing.T, p config.Process, args []string, environ ...string) *config.Config {
	t.Helper()
	cfg, err := config.Load(p, args, append(environ, nowhere), io.Discard)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

func TestDefaultsListenOnLoopback(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.API, nil)
	if cfg.Addr != "127.0.0.1:8080" || cfg.NATS.URL != "nats://127.0.0.1:4222" || cfg.Agents != "" || len(cfg.Origins) != 0 {
		t.Errorf("defaults of the API = %+v, want the documented ones", cfg)
	}
	if diff := cmp.Diff(stream.Options{Stream: "PERDURE", Replicas: 1}, cfg.Stream); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	worker := load(t, config.Worker, nil)
	if worker.WorkflowCache != 1000 || worker.MetricsAddr != "" || worker.Addr != "" || worker.ConnectTimeout != 2*time.Minute {
		t.Errorf("defaults of the worker = %+v, want the documented ones", worker)
	}
}

func TestEnvironmentIsRead(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.API, nil,
		"PERDURE_ADDR=0.0.0.0:80", "PERDURE_AUTH_ALLOW_ANONYMOUS=true", "PERDURE_AGENTS=/etc/agents", "PERDURE_CORS_ORIGINS=https://a.example, http://localhost:*",
		"PERDURE_STREAM=LOG", "PERDURE_REPLICAS=3", "PERDURE_STREAM_MAX_BYTES=2GiB", "PERDURE_LOG_LEVEL=debug",
		"NATS_URL=nats://a:4222,nats://b:4222", "NATS_USER=u", "NATS_PASSWORD=p", "NATS_CREDS=c", "NATS_NKEY=n", "NATS_CERT=crt", "NATS_KEY=key", "NATS_CA=ca",
		"TEMPORAL_ADDRESS=temporal:7233", "TEMPORAL_NAMESPACE=prod", "TEMPORAL_TLS=true", "TEMPORAL_GRPC_META_X_TEAM=blue")
	if cfg.Addr != "0.0.0.0:80" || cfg.Agents != "/etc/agents" || cfg.LogLevel != slog.LevelDebug {
		t.Errorf("configuration = %+v, want that of the environment", cfg)
	}
	if diff := cmp.Diff([]string{"https://a.example", "http://localhost:*"}, cfg.Origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stream.Options{Stream: "LOG", Replicas: 3, MaxBytes: 2 << 30}, cfg.Stream); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
	nats := config.NATS{URL: "nats://a:4222,nats://b:4222", Credentials: "c", User: "u", Password: "p", NKey: "n", Cert: "crt", Key: "key", CA: "ca"}
	if diff := cmp.Diff(nats, cfg.NATS); diff != "" {
		t.Errorf("NATS (-want +got):\n%s", diff)
	}
	if cfg.Temporal.HostPort != "temporal:7233" || cfg.Temporal.Namespace != "prod" {
		t.Errorf("Temporal = %s, %s, want temporal:7233 and prod", cfg.Temporal.HostPort, cfg.Temporal.Namespace)
	}
	if cfg.Temporal.ConnectionOptions.TLS == nil || cfg.Temporal.HeadersProvider == nil {
		t.Error("Temporal without TLS or headers, want both")
	}
}

func TestTaskQueues(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.Worker, []string{"--tools-only=true"}, "PERDURE_TASK_QUEUES=till, floor.eu-1,till")
	if diff := cmp.Diff([]string{"floor.eu-1", "till"}, cfg.TaskQueues); diff != "" || !cfg.ToolsOnly {
		t.Errorf("%v (-want +got):\n%s", cfg.ToolsOnly, diff)
	}
	for _, environ := range []string{"PERDURE_TOOLS_ONLY=true", "PERDURE_TASK_QUEUES=till,", "PERDURE_TASK_QUEUES=" + strings.Repeat("a", 33), "PERDURE_TASK_QUEUES=a b"} {
		var wrong *config.VariableError
		if _, err := config.Load(config.Worker, nil, []string{environ, nowhere}, io.Discard); !errors.As(err, &wrong) || wrong.Name != "PERDURE_TASK_QUEUES" {
			t.Errorf("%s: got %v, want an error about PERDURE_TASK_QUEUES", environ, err)
		}
	}
}

func TestSoftBudgetsAreBelowHardOnes(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.Worker, []string{"--budget-tenant-soft-cost-per-day=1.5"}, "PERDURE_BUDGET_TENANT_COST_PER_DAY=2", "PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY=100")
	if cfg.TenantSoftCostPerDay != 1_500_000 || cfg.TenantSoftTokensPerDay != 100 {
		t.Errorf("soft budgets = %d tokens and %s, want 100 and 1.5", cfg.TenantSoftTokensPerDay, cfg.TenantSoftCostPerDay)
	}
	for _, kind := range []string{"TOKENS", "COST"} {
		soft, hard := "PERDURE_BUDGET_TENANT_SOFT_"+kind+"_PER_DAY", "PERDURE_BUDGET_TENANT_"+kind+"_PER_DAY"
		var wrong *config.VariableError
		if _, err := config.Load(config.Worker, nil, []string{soft + "=100", hard + "=100", nowhere}, io.Discard); !errors.As(err, &wrong) || wrong.Name != soft {
			t.Errorf("soft budget of %s as large as the hard one: got %v, want an error about %s", kind, err, soft)
		}
	}
}

func TestFlagOverridesVariableOfLibrary(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.Worker, []string{"--temporal-address=flag:1", "--replicas", "5"}, "TEMPORAL_ADDRESS=env:1", "PERDURE_REPLICAS=3")
	if cfg.Temporal.HostPort != "flag:1" || cfg.Stream.Replicas != 5 {
		t.Errorf("got %s and %d replicas, want flag:1 and 5", cfg.Temporal.HostPort, cfg.Stream.Replicas)
	}
	if got := cfg.Getenv("TEMPORAL_ADDRESS"); got != "flag:1" {
		t.Errorf("Getenv = %q, want flag:1", got)
	}
}

func TestEmptyVariableIsNotSet(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.API, nil, "PERDURE_REPLICAS=", "TEMPORAL_NAMESPACE=")
	if cfg.Stream.Replicas != 1 || cfg.Temporal.Namespace != "" {
		t.Errorf("got %d replicas and the namespace %q, want 1 and none", cfg.Stream.Replicas, cfg.Temporal.Namespace)
	}
}

func TestBadValueNamesItsVariable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		process  config.Process
		variable string
		value    string
	}{
		{config.API, "PERDURE_ADDR", "8080"},
		{config.API, "PERDURE_ADDR", "localhost:http"},
		{config.API, "PERDURE_CORS_ORIGINS", "app.example"},
		{config.API, "PERDURE_CORS_ORIGINS", "https://app.example/path"},
		{config.API, "PERDURE_CORS_ORIGINS", "https://*.*.example"},
		{config.API, "PERDURE_CORS_ORIGINS", "https://app.example,*"},
		{config.API, "PERDURE_STREAM", "two words"},
		{config.API, "PERDURE_REPLICAS", "6"},
		{config.API, "PERDURE_REPLICAS", "three"},
		{config.API, "PERDURE_STREAM_MAX_BYTES", "much"},
		{config.API, "PERDURE_STREAM_MAX_BYTES", "99999999999999999999"},
		{config.API, "PERDURE_LOG_LEVEL", "loud"},
		{config.API, "PERDURE_LOG_FORMAT", "xml"},
		{config.API, "PERDURE_CONNECT_TIMEOUT", "0s"},
		{config.API, "TEMPORAL_TLS", "yes"},
		{config.Worker, "PERDURE_WORKFLOW_CACHE", "0"},
		{config.Worker, "PERDURE_ALLOW_PRIVATE_HOSTS", "yes"},
		{config.Worker, "PERDURE_METRICS_ADDR", ":99999"},
		{config.Worker, "PERDURE_BUDGET_TENANT_SOFT_TOKENS_PER_DAY", "0"},
		{config.Worker, "PERDURE_BUDGET_TENANT_SOFT_COST_PER_DAY", "much"},
	}
	for _, tt := range tests {
		t.Run(tt.variable+"="+tt.value, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(tt.process, nil, []string{nowhere, tt.variable + "=" + tt.value}, io.Discard)
			var bad *config.VariableError
			if !errors.As(err, &bad) || bad.Name != tt.variable {
				t.Fatalf("error = %v, want one about %s", err, tt.variable)
			}
			if !strings.HasPrefix(err.Error(), tt.variable+": ") {
				t.Errorf("error = %v, want prefix %s", err, tt.variable)
			}
		})
	}
}

func TestAllMistakesAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Worker, nil, []string{nowhere, "PERDURE_REPLICAS=0", "PERDURE_LOG_LEVEL=x", "PERDURE_BUILD_ID=v1"}, io.Discard)
	for _, name := range []string{"PERDURE_REPLICAS", "PERDURE_LOG_LEVEL", "PERDURE_DEPLOYMENT"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error = %v, want text with %s", err, name)
		}
	}
}

func TestMissingProfile(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.API, nil, []string{nowhere, "TEMPORAL_PROFILE=prod"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "prod") {
		t.Errorf("error = %v, want text with prod", err)
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--replicas=9"}, {"--no-such"}, {"stray"}, {"--workflow-cache=5"}, {"--nats-password=x"}} {
		if _, err := config.Load(config.API, args, []string{nowhere}, io.Discard); err == nil {
			t.Errorf("arguments %q: got no error, want one", args)
		}
	}
}

func TestUnknownVariablesAreListed(t *testing.T) {
	t.Parallel()
	cfg := load(t, config.API, nil, "PERDURE_REPLICA=3", "PERDURE_AGENT=x", "PERDURE_WORKFLOW_CACHE=7", "PERDURE_SECRET_SHOP=x", "HOME=/root")
	if diff := cmp.Diff([]string{"PERDURE_AGENT", "PERDURE_REPLICA"}, cfg.Unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHelpShowsEveryVariable(t *testing.T) {
	t.Parallel()
	for _, p := range []config.Process{config.API, config.Worker} {
		var out bytes.Buffer
		if _, err := config.Load(p, []string{"--help"}, nil, &out); !errors.Is(err, config.ErrHelp) {
			t.Fatalf("%s: --help = %v, want %v", p, err, config.ErrHelp)
		}
		for _, v := range config.Variables(p) {
			if !strings.Contains(out.String(), v.Name) || !strings.Contains(out.String(), v.Meaning) {
				t.Errorf("help of %s: got no %s, want its meaning", p, v.Name)
			}
		}
	}
}

func TestSecretsHaveNoFlag(t *testing.T) {
	t.Parallel()
	for _, p := range []config.Process{config.API, config.Worker} {
		for _, v := range config.Variables(p) {
			for _, word := range []string{"PASSWORD", "API_KEY", "_DATA"} {
				if strings.Contains(v.Name, word) && v.Flag() != "" {
					t.Errorf("%s has the flag --%s, want none for a secret", v.Name, v.Flag())
				}
			}
		}
	}
}

func TestLogFollowsLevelAndFormat(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slog.New(load(t, config.API, nil, "PERDURE_LOG_LEVEL=warn").LogHandler(&out)).Info("hidden")
	slog.New(load(t, config.API, nil).LogHandler(&out)).Info("shown")
	if got := out.String(); !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"shown"`) || strings.Contains(got, "hidden") {
		t.Errorf("log = %s, want JSON from info on", got)
	}
	for _, format := range []string{"json", "text"} {
		out.Reset()
		log := slog.New(load(t, config.API, []string{"--log-format=" + format}).LogHandler(&out))
		log.Info("waited", "for", 1500*time.Millisecond, slog.Group("at", "most", time.Minute))
		if got := out.String(); !strings.Contains(got, "1.5s") || !strings.Contains(got, "1m0s") {
			t.Errorf("log as %s: want readable durations, got %s", format, got)
		}
	}
	out.Reset()
	slog.New(load(t, config.API, []string{"--log-format=text"}).LogHandler(&out)).Info("shown")
	if got := out.String(); !strings.Contains(got, "msg=shown") {
		t.Errorf("log = %s, want text with %s", got, "msg=shown")
	}
}

func TestSecretsAreKnown(t *testing.T) {
	t.Parallel()
	c := load(t, config.Worker, nil, "OPENAI_API_KEY=sk-12345678", "PERDURE_SECRET_SHOP=swordfish", "PERDURE_LOG_LEVEL=warn", "HOME=/root")
	if got := c.Secrets(); !slices.Equal(got, []string{"sk-12345678", "swordfish"}) {
		t.Errorf("secrets = %q, want both", got)
	}
}

func TestVersionIsShown(t *testing.T) {
	t.Parallel()
	for _, p := range []config.Process{config.API, config.Worker} {
		var out bytes.Buffer
		if _, err := config.Load(p, []string{"--version"}, []string{"PERDURE_PARK_AFTER=nonsense"}, &out); !errors.Is(err, config.ErrHelp) {
			t.Errorf("%s: --version = %v, want %v", p, err, config.ErrHelp)
		}
		if text := out.String(); !strings.HasPrefix(text, string(p)+" ") || !strings.Contains(text, "\ngo ") && !strings.Contains(text, "go       go1.") {
			t.Errorf("version of %s = %q, want the name and the Go version", p, text)
		}
	}
}

// TestConsoleURL: the public address of the console is known if the API serves one and has a public
// address.
func TestConsoleURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"PERDURE_PUBLIC_URL=https://agents.example/"}, "https://agents.example/console"},
		{[]string{"PERDURE_PUBLIC_URL=https://agents.example", "PERDURE_CONSOLE=false"}, ""},
		{nil, ""},
	} {
		if got := load(t, config.Worker, nil, c.environ...).ConsoleURL(); got != c.want {
			t.Errorf("%q: ConsoleURL() = %q, want %q", c.environ, got, c.want)
		}
	}
}
