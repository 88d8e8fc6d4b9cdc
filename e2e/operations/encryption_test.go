package operations

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// Two keys of the operator.
const (
	firstKey  = "base64key://AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	secondKey = "base64key://HxwdHhobGBkWFxQVEhMQEQ4PDA0KCwgJBgcEBQIDAAE="
)

// encryptedPerdure is a process whose log is encrypted. Its keys are in a file. Rotations send their
// entries of the audit log to the collector, a URL; "" = to none.
type encryptedPerdure struct {
	*kit.Perdure
	data, keys, collector string
}

// startEncrypted starts a process with keys of the operator.
func startEncrypted(t *testing.T, keys ...string) *encryptedPerdure {
	t.Helper()
	dir := t.TempDir()
	p := &encryptedPerdure{data: filepath.Join(dir, "data"), keys: filepath.Join(dir, "keys")}
	p.Perdure = kit.NewPerdure(p.data, kit.SharedModel)
	p.Env = []string{"PERDURE_ENCRYPTION_KEYS_FILE=" + p.keys}
	p.writeKeys(t, keys...)
	p.InspectAtEnd(t)
	p.Start(t)
	return p
}

// writeKeys replaces the keys in the file.
func (p *encryptedPerdure) writeKeys(t *testing.T, keys ...string) {
	t.Helper()
	if err := os.WriteFile(p.keys, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// restartWith kills the process, and starts it with other keys.
func (p *encryptedPerdure) restartWith(t *testing.T, keys ...string) {
	t.Helper()
	p.writeKeys(t, keys...)
	p.Restart(t)
}

// rotate runs the command that replaces the keys of a level, with the keys of the process.
func (p *encryptedPerdure) rotate(t *testing.T, level, want string) {
	t.Helper()
	var addresses struct{ NATS string }
	body, err := os.ReadFile(p.AddressFile())
	if err == nil {
		err = json.Unmarshal(body, &addresses)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), p.Program, "keys", "rotate", level)
	cmd.Env = append(os.Environ(), "NATS_URL="+addresses.NATS, "PERDURE_ENCRYPTION_KEYS_FILE="+p.keys, "OTEL_EXPORTER_OTLP_ENDPOINT="+p.collector)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
		t.Fatalf("keys rotate %s = %s, %v, want %q", level, out, err, want)
	}
}

// TestEncryptedLog: no file of the data directory has content, neither while a run streams, nor while
// it waits for an approval, nor after the thread was deleted. All levels of keys are rotated during
// the runs, and the process restarts with another key of the operator. A collector receives
// the entries of the rotations.
func TestEncryptedLog(t *testing.T) {
	t.Parallel()
	p := startEncrypted(t, firstKey)
	collector := &kit.Traces{Arrived: make(chan struct{})}
	endpoint := httptest.NewServer(collector)
	t.Cleanup(endpoint.Close)
	p.collector = endpoint.URL
	slow, answer := kit.NewInput(kit.Marked("Slowly, please.")), kit.Marked(strings.Repeat("bit by bit, ", 40))
	large := kit.NewInput(kit.LongText(200_000))
	kit.SharedModel.AnswerWith(t, large.Messages[0].Content, kit.Marked("Read."))
	fixture := kit.SlowAnswer(answer)
	fixture.Match = kit.Match{UserMessage: slow.Messages[0].Content}
	kit.SharedModel.Answer(t, fixture)
	prompt, done := kit.Marked("Work it out."), kit.Marked("There.")
	kit.ScriptCalculations(t, prompt, done, "7+7")
	careful := kit.NewInput(prompt)

	p.Run(t, large)
	waiting := p.FollowAgent(t, kit.CarefulPath, careful)
	waiting.Finish(t)
	streaming := p.Follow(t, slow)
	streaming.UntilContent(t, 3)
	p.rotate(t, "threads", "3 threads have a new key.")
	p.rotate(t, "tenants", "1 tenants have a new key, with which the keys of 3 threads are encrypted.")
	kit.WantNoContent(t, "while a run streams", p.data)
	streaming.Finish(t)
	kit.WantMessages(t, []kit.Message{slow.Messages[0], kit.AssistantMessage(answer)}, p.MessagesOf(t, slow.ThreadID))

	p.restartWith(t, secondKey, firstKey)
	p.rotate(t, "operator", "The keys of 1 tenants are encrypted with the first key.")
	p.restartWith(t, secondKey)
	rotations := p.StartCommand(t, "audit", "--platform", "--action", "keys.rotate", "--json").Finish(t, 0)
	for _, detail := range []string{`"level": "threads"`, `"level": "tenants"`, `"level": "operator"`, `"operatorKey": "`} {
		if !strings.Contains(rotations, detail) {
			t.Errorf("entries of the rotations:\n%s\nwant one with %s", rotations, detail)
		}
	}
	collector.AwaitRecord(t, "keys.rotate accepted")
	waiting.Approve(t)
	kit.WantMessages(t, []kit.Message{slow.Messages[0], kit.AssistantMessage(answer)}, p.MessagesOf(t, slow.ThreadID))

	for _, in := range []kit.Input{slow, careful, large} {
		if status := p.Delete(t, in.ThreadID); status != http.StatusNoContent {
			t.Errorf("delete: got %d, want %d", status, http.StatusNoContent)
		}
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	kit.WantNoContent(t, "after the threads were deleted", p.data)
}

// TestEncryptionNeedsItsKey: a process refuses to start without the key of an encrypted log, or with
// another one, and names the variable.
func TestEncryptionNeedsItsKey(t *testing.T) {
	t.Parallel()
	p := startEncrypted(t, firstKey)
	in := kit.NewInput(kit.Marked("Hello?"))
	kit.SharedModel.AnswerWith(t, in.Messages[0].Content, kit.Marked("Hello."))
	p.Run(t, in)
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ env, want string }{
		"no key":      {"PERDURE_ENCRYPTION_KEYS_FILE=", "PERDURE_ENCRYPTION_KEYS: the log is encrypted, and no encryption key is configured"},
		"another key": {"PERDURE_ENCRYPTION_KEYS=" + secondKey, "PERDURE_ENCRYPTION_KEYS: encryption: the key of tenant default: the configured encryption keys lack one that is in use"},
		"no URL":      {"PERDURE_ENCRYPTION_KEYS=secret", "PERDURE_ENCRYPTION_KEYS: key 1: must begin with one of base64key://"},
	} {
		cmd := p.Command()
		cmd.Env = append(cmd.Env, "PERDURE_ENCRYPTION_KEYS_FILE=", tt.env)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s: got %v, %s, want %q", name, err, out, tt.want)
		}
	}
}
