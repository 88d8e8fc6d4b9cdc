package archtest

import (
	"crypto/tls"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"github.com/perdure/perdure/internal/process/config"
)

const root = "../.."

// composition is the part of docker-compose.yml that the rules check.
type composition struct {
	Services map[string]service   `yaml:"services"`
	Volumes  map[string]yaml.Node `yaml:"volumes"`
}

type service struct {
	Image string `yaml:"image"`
	Build struct {
		Target string `yaml:"target"`
	} `yaml:"build"`
	Environment map[string]string `yaml:"environment"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Volumes     []string   `yaml:"volumes"`
	Ports       []string   `yaml:"ports"`
	Healthcheck *yaml.Node `yaml:"healthcheck"`
	Restart     string     `yaml:"restart"`
	EnvFile     string     `yaml:"env_file"`
	Deploy      struct {
		Replicas int `yaml:"replicas"`
	} `yaml:"deploy"`
}

// compose returns the composition of docker-compose.yml.
func compose(t *testing.T) composition {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal(read(t, "docker-compose.yml"), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// read returns a file of the project.
func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// secrets returns a directory with the secrets that deploy/setup.sh makes for docker-compose.yml.
func secrets(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIP: openssl is not installed")
	}
	dir := filepath.Join(t.TempDir(), "secrets")
	if out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy", "setup.sh"), dir).CombinedOutput(); err != nil {
		t.Fatalf("deploy/setup.sh: %v\n%s", err, out)
	}
	return dir
}

// secretsOf returns the directory of secrets of a service; "" = it has none.
func (s service) secretsOf(all string) string {
	for _, volume := range s.Volumes {
		source, target, _ := strings.Cut(volume, ":")
		if target == "/secrets:ro" {
			return filepath.Join(all, strings.TrimPrefix(source, "./deploy/secrets/"))
		}
	}
	return ""
}

// readFile returns the text of a file.
func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// fallback is a reference to an environment variable of the user who runs compose.
var fallback = regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)

// built returns the services that run one of this repository's images.
func (c composition) built(target string) map[string]service {
	ours := map[string]service{}
	for name, s := range c.Services {
		if s.Build.Target == target {
			ours[name] = s
		}
	}
	return ours
}

func TestComposeIsUnderstoodByTheProcesses(t *testing.T) {
	t.Parallel()
	c, dir := compose(t), secrets(t)
	for _, p := range []config.Process{config.API, config.Worker} {
		known := map[string]bool{}
		for _, v := range config.Variables(p) {
			known[v.Name] = true
		}
		services := c.built(string(p))
		if len(services) == 0 {
			t.Errorf("no service runs %s", p)
		}
		for name, s := range services {
			var environ []string
			for variable, value := range s.Environment {
				if !known[strings.TrimSuffix(variable, "_FILE")] {
					t.Errorf("%s sets %s, which %s does not read", name, variable, p)
				}
				value = strings.ReplaceAll(value, "/secrets", s.secretsOf(dir))
				environ = append(environ, variable+"="+fallback.ReplaceAllString(value, "$1"))
			}
			cfg, err := config.Load(p, nil, append(environ, "TEMPORAL_CONFIG_FILE=none"), io.Discard)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if cfg.Stream.Replicas != 3 {
				t.Errorf("%s: copies of the log = %d, want 3", name, cfg.Stream.Replicas)
			}
			if cfg.NATS.User != "perdure-"+string(p) || cfg.NATS.Password == "" || !strings.HasPrefix(cfg.NATS.URL, "tls://") || cfg.Temporal.ConnectionOptions.TLS == nil {
				t.Errorf("%s: user of NATS = %q at %s, TLS of Temporal: %t, want the role of the process, and TLS", name, cfg.NATS.User, cfg.NATS.URL, cfg.Temporal.ConnectionOptions.TLS != nil)
			}
			if p == config.API && (cfg.Auth.Mode == config.AuthNone || cfg.Auth.AllowAnonymous) {
				t.Errorf("%s accepts every caller", name)
			}
		}
	}
}

func TestComposeHasTwoNodesOfEachKind(t *testing.T) {
	t.Parallel()
	c := compose(t)
	if n := len(c.built("api")); n != 2 {
		t.Errorf("number of APIs = %d, want 2", n)
	}
	workers := 0
	for _, s := range c.built("worker") {
		workers += max(1, s.Deploy.Replicas)
	}
	if workers != 2 {
		t.Errorf("number of workers = %d, want 2", workers)
	}
}

func TestComposeReferencesExist(t *testing.T) {
	t.Parallel()
	c, dir := compose(t), secrets(t)
	for name, s := range c.Services {
		if s.EnvFile != "" {
			if _, err := os.Stat(filepath.Join(dir, strings.TrimPrefix(s.EnvFile, "./deploy/secrets/"))); err != nil {
				t.Errorf("%s: deploy/setup.sh does not make %s", name, s.EnvFile)
			}
		}
		for variable, value := range s.Environment {
			if regexp.MustCompile(`PASSWORD$|_PWD$|SECRET`).MatchString(variable) {
				t.Errorf("%s has the secret %s=%s in docker-compose.yml", name, variable, value)
			}
		}
		for on, how := range s.DependsOn {
			other, ok := c.Services[on]
			if !ok {
				t.Errorf("%s depends on %s, which is not there", name, on)
			}
			if how.Condition == "service_healthy" && other.Healthcheck == nil {
				t.Errorf("%s waits for %s to be healthy, which has no check", name, on)
			}
			if how.Condition == "service_completed_successfully" && !strings.HasPrefix(other.Restart, "on-failure") {
				t.Errorf("%s waits for %s to complete, which is always started again", name, on)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(source, "./") {
				if _, ok := c.Volumes[source]; !ok {
					t.Errorf("%s: there is no volume %s", name, source)
				}
			} else if made, ok := strings.CutPrefix(source, "./deploy/secrets/"); ok {
				if _, err := os.Stat(filepath.Join(dir, made)); err != nil {
					t.Errorf("%s: deploy/setup.sh does not make %s", name, source)
				}
			} else if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s to the network", name, port)
			}
		}
		if strings.Contains(s.Image, ":latest") || s.Build.Target == "" && !strings.Contains(s.Image, ":") {
			t.Errorf("%s: the version of %s is not pinned", name, s.Image)
		}
	}
}

func TestComposeVersionsFollowGoMod(t *testing.T) {
	t.Parallel()
	c, mod := compose(t), string(read(t, "go.mod"))
	for module, service := range map[string]string{"github.com/nats-io/nats-server/v2": "nats-1", "go.temporal.io/server": "temporal"} {
		version := regexp.MustCompile(`\s` + module + ` v(\d+\.\d+)\.`).FindStringSubmatch(mod)
		if version == nil {
			t.Fatalf("%s is not in go.mod", module)
		}
		if image := c.Services[service].Image; !strings.Contains(image, ":"+version[1]) {
			t.Errorf("image of %s = %s, want version %s as in go.mod", service, image, version[1])
		}
	}
	goVersion := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(mod)[1]
	if !regexp.MustCompile(`golang:` + regexp.QuoteMeta(goVersion) + `[ @]`).Match(read(t, "Dockerfile")) {
		t.Errorf("the Dockerfile does not build with Go %s", goVersion)
	}
}

// TestNATSConfigurationFitsTheLog: the NATS server itself reads the configuration. The
// server expands environment variables, so this test is not parallel.
func TestNATSConfigurationFitsTheLog(t *testing.T) {
	c, dir, files := compose(t), secrets(t), t.TempDir()
	var nodes []string
	for name, s := range c.Services {
		if strings.HasPrefix(s.Image, "nats:") {
			nodes = append(nodes, name)
			for variable, value := range s.Environment {
				t.Setenv(variable, value)
			}
		}
	}
	for line := range strings.Lines(readFile(t, filepath.Join(dir, "nats.env"))) {
		variable, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(variable, value)
	}
	for _, name := range []string{"perdure.conf", "node.conf", "roles.conf"} {
		text := strings.ReplaceAll(string(read(t, "deploy/nats/"+name)), "/secrets/", dir+"/nats/")
		if err := os.WriteFile(filepath.Join(files, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, err := server.ProcessConfigFile(filepath.Join(files, "perdure.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if o.TLSConfig == nil || o.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert || o.Cluster.TLSConfig == nil || o.Cluster.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert {
		t.Error("clients or nodes can connect without a certificate")
	}
	if !o.JetStream || o.SyncInterval != 100*time.Millisecond || o.SyncAlways {
		t.Errorf("JetStream = %v, sync interval = %s, want true and 100ms", o.JetStream, o.SyncInterval)
	}
	if o.MaxPayload < 512<<10 {
		t.Errorf("max_payload = %d, want at least 512 KiB for a frame", o.MaxPayload)
	}
	var routes []string
	for _, r := range o.Routes {
		routes = append(routes, r.Hostname())
	}
	slices.Sort(nodes)
	slices.Sort(routes)
	if len(nodes) != 3 || !slices.Equal(nodes, routes) {
		t.Errorf("nodes = %q, routes = %q, want three equal ones", nodes, routes)
	}
	for _, target := range []string{"api", "worker"} {
		for name, s := range c.built(target) {
			password := strings.TrimSpace(readFile(t, filepath.Join(s.secretsOf(dir), "nats-password")))
			if !slices.ContainsFunc(o.Users, func(u *server.User) bool {
				return u.Username == s.Environment["NATS_USER"] && u.Password == password && u.Permissions != nil
			}) {
				t.Errorf("%s is not a user that the servers know", name)
			}
		}
	}
	for _, name := range nodes {
		s := c.Services[name]
		if !slices.ContainsFunc(s.Volumes, func(v string) bool { return strings.HasSuffix(v, ":"+o.StoreDir) }) {
			t.Errorf("%s does not keep %s", name, o.StoreDir)
		}
		if s.Environment["SERVER_NAME"] != name {
			t.Errorf("%s calls itself %s", name, s.Environment["SERVER_NAME"])
		}
	}
}

func TestDockerfileHasItsTargets(t *testing.T) {
	t.Parallel()
	file := string(read(t, "Dockerfile"))
	for _, target := range []string{"api", "worker", "perdure"} {
		_, stage, found := strings.Cut(file, "\nFROM base AS "+target+"\n")
		if !found {
			t.Errorf("there is no target %s on the common base", target)
			continue
		}
		stage, _, _ = strings.Cut(stage, "\nFROM ")
		if !strings.Contains(stage, `ENTRYPOINT ["/usr/local/bin/`+target+`"]`) {
			t.Errorf("%s does not start itself", target)
		}
		if !strings.Contains(file, "-o /out/"+target+" ./cmd/"+target) {
			t.Errorf("%s is not built from cmd/%s", target, target)
		}
		if _, err := os.Stat(filepath.Join(root, "cmd", target)); err != nil {
			t.Error(err)
		}
		for _, set := range regexp.MustCompile(`(?m)^ENV ([A-Z_]+)=`).FindAllStringSubmatch(stage, -1) {
			if !config.Known(set[1]) {
				t.Errorf("%s sets %s, which means nothing", target, set[1])
			}
		}
	}
	if !regexp.MustCompile(`FROM \S+:nonroot(@\S+)? AS base`).MatchString(file) {
		t.Error("the common base runs as root")
	}
}

// TestSearchAttributesAgree: the installation creates exactly the search attributes that the API
// requires.
func TestSearchAttributesAgree(t *testing.T) {
	t.Parallel()
	source := string(read(t, "runs/attributes.go"))
	var want []string
	for _, attribute := range regexp.MustCompile(`NewSearchAttributeKey\w+\("(\w+)"\)`).FindAllStringSubmatch(source, -1) {
		want = append(want, attribute[1])
	}
	for _, file := range []string{"deploy/temporal/namespace.sh", "docs/reference/configuration.md"} {
		list := regexp.MustCompile(`for name in ([A-Za-z ]+); do`).FindStringSubmatch(string(read(t, file)))
		if list == nil {
			t.Errorf("%s creates no search attributes", file)
			continue
		}
		if got := strings.Fields(list[1]); !slices.Equal(got, want) {
			t.Errorf("%s creates the search attributes %s, want %s", file, got, want)
		}
	}
}
