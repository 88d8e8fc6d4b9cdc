package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/e2e/kit"
)

// customerUsers are the users of the guide, by the variable with the token, each with its tenant
// and its role.
var customerUsers = map[string][2]string{
	"ANN": {"acme"}, "EVE": {"acme"}, "BOB": {"acme", "finance"}, "ADA": {"acme", "perdure-tenant-admin"},
	"GIL": {"globex", "finance"}, "GUS": {"globex", "perdure-tenant-admin"}, "OPS": {"operations", "perdure-platform-admin"},
}

// customerRefusals are the commands of the guide that do not succeed, in its order, with the exit
// code and a part of the output. All other commands succeed.
var customerRefusals = []struct {
	command string
	code    int
	text    string
}{
	{`PERDURE_TOKEN=$ADA perdure agents put clerk.yaml`, 8, "forbidden"},
	{`PERDURE_TOKEN=$GIL perdure run desk "What time is it?" --thread gil-1`, 6, "unknown_agent"},
	{`grep -rlF "What time is it?" .perdure`, 1, ""},
	{`PERDURE_TOKEN=$GUS perdure threads show ann-1`, 6, "unknown_thread"},
	{`PERDURE_TOKEN=$OPS perdure threads show ann-1`, 6, "unknown_thread"},
	{`PERDURE_TOKEN=$EVE perdure run clerk "What time is it?" --thread ann-1`, 8, "forbidden"},
	{`PERDURE_TOKEN=$ANN perdure run clerk "What is 12*7?" --thread ann-1 < /dev/null`, waitsForPeople, "waits for a decision"},
	{`PERDURE_TOKEN=$BOB perdure threads messages ann-1`, 8, "forbidden"},
	{`PERDURE_TOKEN=$ANN perdure approve $approval`, 8, "not_an_approver"},
	{`PERDURE_TOKEN=$GIL perdure approve $approval --thread ann-1`, 6, "unknown_approval"},
	{`PERDURE_TOKEN=$ADA perdure audit --platform`, 8, "forbidden"},
	{`PERDURE_TOKEN=$ANN perdure threads delete ann-1`, 7, "legal_hold"},
}

// customerAudit are the entries about the thread after its deletion: subject, action and outcome.
var customerAudit = []string{
	"ann run.start accepted", "eve read denied", "ann thread.share accepted", "eve run.start denied", "ann run.start accepted", "bob read denied",
	"ann approval.decide denied", "bob approval.decide accepted", "ada hold.set accepted", "ann thread.delete denied", "ada hold.release accepted", "ann thread.delete accepted",
}

// TestTwoCustomers: the commands of the guide for two customers work as written, and fail where it
// says that they are refused, with its exit codes and errors. The test signs the tokens.
func TestTwoCustomers(t *testing.T) {
	t.Parallel()
	text, dir := readGuide(t, "guides/two-customers"), t.TempDir()
	p := kit.NewPerdure(filepath.Join(dir, ".perdure"), kit.SharedModel)
	issuer := kit.StartIssuer(t)
	p.Agents, p.Env = filepath.Join(dir, "agents"), customerSettings(t, text, dir, issuer.URL)
	p.Start(t)
	t.Cleanup(func() { // not inspected: the thread of the guide is deleted
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	env := append(os.Environ(), "PERDURE_URL="+p.URL(""))
	for name, user := range customerUsers {
		claims := map[string]any{"aud": "perdure-cli", "org": user[0], "roles": strings.Fields(user[1])}
		env = append(env, name+"="+issuer.Token(t, strings.ToLower(name), time.Hour, claims))
	}

	commands := customerCommands(text)
	var script strings.Builder
	for i, c := range commands {
		_, _ = fmt.Fprintf(&script, "{ %s\n} > %d.out 2>&1 < /dev/null; echo $? > %d.code\n", c.text, i, i)
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer("http://127.0.0.1:8080", p.URL(""), " perdure ", " "+p.Program+" ").Replace(script.String()))
	sh.Dir, sh.Env = dir, env
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := range commands {
		commands[i].out, commands[i].code = readIn(t, dir, fmt.Sprintf("%d.out", i)), strings.TrimSpace(readIn(t, dir, fmt.Sprintf("%d.code", i)))
	}
	wantCustomerResults(t, commands)
}

// customerSettings runs the first commands of the guide, which write the settings into a folder, and
// returns these with an issuer.
func customerSettings(t *testing.T, text, dir, issuer string) []string {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "sh", "-ec", guideBlock.FindStringSubmatch(text)[2])
	sh.Dir = dir
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, definition, _ := strings.Cut(text, "```yaml\n")
	definition, _, _ = strings.Cut(definition, "```")
	for name, content := range map[string]string{"console-secret": "secret-of-the-console", "clerk.yaml": definition} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := readIn(t, dir, "perdure.env")
	settings = strings.NewReplacer("_FILE=", "_FILE="+dir+"/", "https://login.example/realms/customers", issuer).Replace(settings)
	return strings.Split(strings.TrimSpace(settings), "\n")
}

// customerCommand is a command of the guide, or a block of commands whose output the guide shows.
type customerCommand struct {
	text, shown string
	out, code   string
}

// customerCommands returns the commands of the guide that need tokens.
func customerCommands(text string) (commands []customerCommand) {
	for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
		switch lines := strings.TrimSpace(block[2]); {
		case strings.Contains(lines, "perdure.env"), strings.Contains(lines, "$(token)"):
		case block[3] != "":
			commands = append(commands, customerCommand{text: lines, shown: block[3]})
		default:
			for line := range strings.SplitSeq(lines, "\n") {
				commands = append(commands, customerCommand{text: line})
			}
		}
	}
	return commands
}

// wantCustomerResults checks the exit codes and the output of the commands.
func wantCustomerResults(t *testing.T, commands []customerCommand) {
	t.Helper()
	refusals, audit := customerRefusals, ""
	for _, c := range commands {
		code := "0"
		if len(refusals) > 0 && c.text == refusals[0].command {
			code = strconv.Itoa(refusals[0].code)
			if !strings.Contains(c.out, refusals[0].text) {
				t.Errorf("%s: got %q, want %s", c.text, c.out, refusals[0].text)
			}
			refusals = refusals[1:]
		}
		if c.code != code {
			t.Errorf("%s: exits with %s, want %s\n%s", c.text, c.code, code, c.out)
		}
		wantLines(t, c.shown, c.out)
		if c.text == "PERDURE_TOKEN=$GUS perdure audit" && (!strings.Contains(c.out, "NUMBER") || strings.Contains(c.out, "ann")) {
			t.Errorf("audit log of globex:\n%s\nwant no entry of acme", c.out)
		}
		if c.text == "PERDURE_TOKEN=$ADA perdure audit --thread ann-1" {
			audit = c.out // at last that after the deletion
		}
	}
	if len(refusals) > 0 {
		t.Errorf("commands of the guide: want %q", refusals[0].command)
	}
	var entries []string
	for line := range strings.Lines(audit) {
		if f := strings.Fields(line); len(f) > 4 && f[0] != "NUMBER" {
			entries = append(entries, strings.Join(f[2:5], " "))
		}
	}
	slices.Reverse(entries) // the command shows the newest one first
	if got, want := strings.Join(entries, "\n"), strings.Join(customerAudit, "\n"); got != want {
		t.Errorf("entries of the deleted thread:\n%s\nwant\n%s", got, want)
	}
}

// readIn returns the content of a file in a folder.
func readIn(t *testing.T, dir, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
