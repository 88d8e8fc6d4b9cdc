package operations

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/e2e/kit"
)

// uploadedFile is a file as the API describes it.
type uploadedFile struct{ ID, URL string }

// TestFiles: a file of 400 MiB takes much less memory, a killed process loses no file that was
// acknowledged, the model receives the bytes of an image, no file of the data directory has them, and
// they are deleted with the thread.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := startEncrypted(t, firstKey)
	// With the limit, which is less than it needs, the process collects garbage all the time. On a busy machine the
	// collection is late.
	p.Env = append(p.Env, "PERDURE_FILES_MAX_SIZE=400MiB", "GOMEMLIMIT=150MiB")
	p.Restart(t)
	dir := t.TempDir()
	large := make([]byte, 400<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(large)
	name := filepath.Join(dir, "large.bin")
	if err := os.WriteFile(name, large, 0o600); err != nil {
		t.Fatal(err)
	}
	before := peakMemory(t, p.Process.Cmd.Process.Pid)
	uploaded := p.putFile(t, name)
	if more := peakMemory(t, p.Process.Cmd.Process.Pid) - before; more > 330<<20 {
		t.Errorf("peak memory = %d MiB more for a file of 400 MiB, want at most 330", more>>20)
	}

	body, sent := io.Pipe()
	broken := make(chan error, 1)
	go func() {
		resp, err := http.Post(p.URL("/v1/files?name=broken"), "", body)
		if err == nil {
			err = resp.Body.Close()
		}
		broken <- err
	}()
	if _, err := sent.Write(large[:10<<20]); err != nil {
		t.Fatal(err)
	}
	p.Restart(t)
	_ = sent.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-broken; err != nil { // the server was gone, or has refused the body
		t.Logf("the upload broke: %v", err)
	}
	copied := filepath.Join(dir, "copy")
	p.StartCommand(t, "file", "get", uploaded.ID, "--output", copied).Finish(t, 0)
	if got, err := os.ReadFile(copied); err != nil || sha256.Sum256(got) != sha256.Sum256(large) {
		t.Errorf("the file has %d bytes after the restart (%v), want the %d bytes of the upload", len(got), err, len(large))
	}
	if list := p.StartCommand(t, "file", "list").Finish(t, 0); strings.Contains(list, "broken") {
		t.Errorf("files = %s, want no file of the upload that was killed", list)
	}

	prompt, thread := kit.Marked("What is this?"), kit.NewThreadOf(p.Perdure)
	kit.SharedModel.AnswerWith(t, prompt, "A picture.")
	png := append([]byte("\x89PNG\r\n\x1a\n"), []byte(strings.Repeat(kit.Marked("pixels"), 1000))...)
	photo := filepath.Join(dir, "photo.png")
	if err := os.WriteFile(photo, png, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := p.StartCommand(t, "run", "assistant", "--thread", thread, "--file", photo, prompt).Finish(t, 0); !strings.Contains(out, "A picture.") {
		t.Errorf("run = %s, want the answer", out)
	}
	calls := kit.SharedModel.Calls(t, prompt)
	if len(calls) != 1 || !bytes.Contains(lastContent(calls[0]), []byte(base64.StdEncoding.EncodeToString(png))) {
		t.Errorf("the model has received %d requests, want one with the bytes of the image", len(calls))
	}
	kit.WantNoContent(t, "with an image", p.data)
	var items struct{ Items []uploadedFile }
	list := p.StartCommand(t, "file", "list", "--json").Finish(t, 0)
	if err := json.Unmarshal([]byte(list), &items); err != nil || len(items.Items) != 2 {
		t.Fatalf("files = %s (%v), want two", list, err)
	}
	p.StartCommand(t, "threads", "delete", thread).Finish(t, 0)
	resp, err := p.Get(t.Context(), items.Items[0].URL, "")
	if problem := kit.ReadProblem(t, resp, err); problem.Code != "unknown_file" {
		t.Errorf("file of a deleted thread: got %+v, want unknown_file", problem)
	}
	p.StartCommand(t, "file", "rm", uploaded.ID).Finish(t, 0)
}

// putFile uploads a file with the command.
func (p *encryptedPerdure) putFile(t *testing.T, name string) (f uploadedFile) {
	t.Helper()
	out := p.StartCommand(t, "file", "put", name, "--json").Finish(t, 0)
	if err := json.Unmarshal([]byte(out), &f); err != nil || f.ID == "" {
		t.Fatalf("file put = %s, %v", out, err)
	}
	return f
}

// lastContent returns the content of the last message of a call.
func lastContent(c kit.Call) []byte { return c.Body.Messages[len(c.Body.Messages)-1].Content }

// peakMemory returns the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) (n int64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n << 10
}
