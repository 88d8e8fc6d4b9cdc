package operations

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// eicar is the test file of the vendors of virus scanners, in two parts: so no scanner finds it here.
const eicar = `X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-` + `ANTIVIRUS-TEST-FILE!$H+H*`

// Bounds of clamd, both below the largest size of a file.
const (
	maxFileSize     = 55 << 20 // clamd scans no larger file
	streamMaxLength = 60 << 20 // clamd takes no larger file
)

// clamd is a clamd with one signature, that of eicar.
type clamd struct {
	address, dir string
	process      *kit.Process
}

// newClamd configures a clamd. It skips the test if clamd is not installed.
func newClamd(t *testing.T) *clamd {
	t.Helper()
	if _, err := exec.LookPath("clamd"); err != nil {
		t.Skip("SKIP: this test needs clamd, which is not installed")
	}
	port := kit.FreePorts(t, 1)[0]
	c := &clamd{address: "127.0.0.1:" + strconv.Itoa(port), dir: t.TempDir()}
	conf := fmt.Sprintf("DatabaseDirectory %s\nTCPAddr 127.0.0.1\nTCPSocket %d\nForeground yes\nStreamMaxLength %d\nMaxFileSize %d\nAlertExceedsMax yes\n",
		c.dir, port, streamMaxLength, maxFileSize)
	signature := "Test.Eicar:0:*:" + hex.EncodeToString([]byte(eicar)) + "\n"
	for name, content := range map[string]string{"clamd.conf": conf, "test.ndb": signature} {
		if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t)
	t.Cleanup(func() { c.process.Kill() })
	return c
}

// start starts clamd, and waits until it accepts connections.
func (c *clamd) start(t *testing.T) {
	t.Helper()
	// clamd listens before it writes this line.
	cmd := exec.Command("clamd", "--config-file", filepath.Join(c.dir, "clamd.conf"))
	var err error
	if c.process, err = kit.Launch(t.Context(), cmd, &kit.Output{}, func(line []byte) bool { return bytes.Contains(line, []byte("Self checking every")) }); err != nil {
		t.Fatal(err)
	}
}

// TestFilesWithClamd scans files with clamd: only a verdict stores a file.
func TestFilesWithClamd(t *testing.T) {
	t.Parallel()
	c := newClamd(t)
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = append(p.Env, "PERDURE_FILES_SCANNER="+c.address)
	p.InspectAtEnd(t)
	p.Start(t)
	clean := bytes.Repeat([]byte("0123456789abcde\n"), 50<<16) // 50 MiB
	kept := mustPost(t, p, bytes.NewReader(clean))
	wantBytes(t, p, kept.URL, "", clean)

	for _, refused := range []struct {
		name string
		body []byte
		want string
	}{
		{"a threat", []byte(eicar), "422 file_infected"},
		{"a threat at the end", append(clean[:len(clean):len(clean)], eicar...), "422 file_infected"},
		{"more than MaxFileSize", make([]byte, maxFileSize+1<<20), "422 file_infected"},
		{"more than StreamMaxLength", make([]byte, streamMaxLength+1<<20), "503 unavailable"},
	} {
		resp, err := postFile(p, bytes.NewReader(refused.body))
		problem := kit.ReadProblem(t, resp, err)
		if got := fmt.Sprint(resp.StatusCode, " ", problem.Code); got != refused.want {
			t.Errorf("%s: got %s, want %s", refused.name, got, refused.want)
		}
	}

	p.Output.Await(t, "INSTREAM size limit exceeded")

	broken := beginUpload(t, p, clean[:10<<20])
	c.process.Kill()
	if _, err := broken.body.Write(clean[10<<20:]); err != nil {
		t.Fatal(err)
	}
	_ = broken.body.Close()
	if err := <-broken.ended; !strings.Contains(err.Error(), "503") {
		t.Errorf("an upload without an answer of clamd: got %v, want 503", err)
	}
	resp, err := postFile(p, strings.NewReader("text"))
	if problem := kit.ReadProblem(t, resp, err); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("without clamd: got %d %+v, want 503", resp.StatusCode, problem)
	}
	if list := p.StartCommand(t, "file", "list", "--json").Finish(t, 0); strings.Count(list, `"id"`) != 1 {
		t.Errorf("files = %s, want the first one", list)
	}
	c.start(t)
	mustPost(t, p, strings.NewReader("text"))

	c.process.Freeze(t)
	slow := beginUpload(t, p, clean[:1<<20])
	_ = slow.body.CloseWithError(io.EOF)
	select {
	case err := <-slow.ended:
		t.Errorf("an upload without a verdict has ended: %v", err)
	default:
	}
	c.process.Thaw(t)
	if err := <-slow.ended; !strings.Contains(err.Error(), "201") {
		t.Errorf("an upload with a slow clamd: got %v, want 201", err)
	}
}
