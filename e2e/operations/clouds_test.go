package operations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/nats-io/nats.go"
	"gocloud.dev/blob"

	"github.com/perdure/perdure/e2e/kit"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/internal/files/bucket"
	"github.com/perdure/perdure/stream"
)

// cloud is a server with the protocol of a cloud's buckets, which has the bucket "files".
type cloud struct {
	url     string // of the bucket, for PERDURE_FILES
	bucket  *blob.Bucket
	process *kit.Process
	command func() *exec.Cmd
	ready   string
}

// start starts the server, or starts it again on the same objects.
func (c *cloud) start(t *testing.T) {
	t.Helper()
	var err error
	if c.process, err = kit.Launch(t.Context(), c.command(), &kit.Output{}, func(line []byte) bool { return bytes.Contains(line, []byte(c.ready)) }); err != nil {
		t.Fatal(err)
	}
}

// open opens the bucket, also for processes of the test: the SDKs read the environment.
func (c *cloud) open(t *testing.T) {
	t.Helper()
	c.start(t)
	t.Cleanup(func() { c.process.Kill() })
	var err error
	if c.bucket, err = blob.OpenBucket(t.Context(), c.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.bucket.Close() })
}

// wantObjects checks the number of objects.
func (c *cloud) wantObjects(t *testing.T, when string, want int) {
	t.Helper()
	got := 0
	for objects := c.bucket.List(nil); ; got++ {
		_, err := objects.Next(t.Context())
		if err == io.EOF { //nolint:errorlint // as the library documents
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got != want {
		t.Errorf("objects %s = %d, want %d", when, got, want)
	}
}

// parts returns the number of uploads that S3 keeps open; other clouds keep none for ever.
func (c *cloud) parts(t *testing.T) int {
	t.Helper()
	var client *s3.Client
	if !c.bucket.As(&client) {
		return 0
	}
	name := "files"
	list, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &name})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Uploads)
}

// isS3 reports whether the cloud is S3.
func (c *cloud) isS3() bool {
	var client *s3.Client
	return c.bucket.As(&client)
}

// awaitParts waits until S3 keeps a number of uploads open.
func (c *cloud) awaitParts(t *testing.T, what string, is func(n int) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
	defer cancel()
	for !is(c.parts(t)) {
		select {
		case <-time.After(20 * time.Millisecond): // poll interval
		case <-ctx.Done():
			t.Fatalf("%s: S3 has %d open uploads", what, c.parts(t))
		}
	}
}

// newCloud returns a server of e2e/buckets.
func newCloud(t *testing.T, protocol string) (c *cloud, address string) {
	t.Helper()
	program, data := filepath.Join(t.TempDir(), "buckets"), t.TempDir()
	if err := kit.Build("buckets", program, "."); err != nil {
		t.Fatal(err)
	}
	address = "127.0.0.1:" + strconv.Itoa(kit.FreePorts(t, 1)[0])
	return &cloud{ready: "serving", command: func() *exec.Cmd {
		return exec.Command(program, "-protocol", protocol, "-addr", address, "-data", data)
	}}, address
}

// TestFilesInS3 stores files by the protocol of S3.
func TestFilesInS3(t *testing.T) {
	c, address := newCloud(t, "s3")
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	c.url = "s3://files?region=eu-central-1&use_path_style=true&endpoint=http://" + address
	c.open(t)
	testCloud(t, c)
}

// TestFilesInGoogleCloudStorage stores files by the protocol of Google Cloud Storage.
func TestFilesInGoogleCloudStorage(t *testing.T) {
	c, address := newCloud(t, "gs")
	t.Setenv("STORAGE_EMULATOR_HOST", address)
	c.url = "gs://files"
	c.open(t)
	testCloud(t, c)
}

// TestFilesInAzureBlobStorage stores files by the protocol of Azure Blob Storage.
func TestFilesInAzureBlobStorage(t *testing.T) {
	dir, data, port := filepath.Join("node", "azurite"), t.TempDir(), strconv.Itoa(kit.FreePorts(t, 1)[0])
	if err := kit.Install(dir); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AZURE_STORAGE_ACCOUNT", "devstoreaccount1")
	t.Setenv("AZURE_STORAGE_KEY", "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==") // the documented key of the emulator
	c := &cloud{url: "azblob://files?protocol=http&domain=127.0.0.1:" + port, ready: "successfully listens", command: func() *exec.Cmd {
		return exec.Command("node", filepath.Join(dir, "node_modules", "azurite", "dist", "src", "blob", "main.js"),
			"--blobPort", port, "--location", data, "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	}}
	c.open(t)
	var client *container.Client
	if !c.bucket.As(&client) {
		t.Fatal("the bucket has no client of Azure")
	}
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	testCloud(t, c)
}

// testCloud stores files of a process in a cloud: an upload that breaks off leaves nothing, an outage
// of the cloud loses nothing, and the sweep removes what a killed process leaves.
func testCloud(t *testing.T, c *cloud) {
	t.Helper()
	p := kit.NewPerdure(filepath.Join(t.TempDir(), "data"), kit.SharedModel)
	p.Env = append(p.Env, "PERDURE_FILES="+c.url)
	p.InspectAtEnd(t)
	p.Start(t)
	content := make([]byte, 20<<20+123)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(content)

	kept := mustPost(t, p, bytes.NewReader(content))
	c.wantObjects(t, "after the upload", 1)
	wantBytes(t, p, kept.URL, "", content)
	wantBytes(t, p, kept.URL, "bytes=10000000-10000999", content[10_000_000:10_001_000])
	wantBytes(t, p, kept.URL, "bytes=-10", content[len(content)-10:])

	broken := beginUpload(t, p, content[:12<<20])
	if c.isS3() {
		c.awaitParts(t, "during an upload", func(n int) bool { return n == 1 })
	}
	broken.end(t, io.ErrUnexpectedEOF)
	c.awaitParts(t, "after an upload that broke off", func(n int) bool { return n == 0 })
	c.wantObjects(t, "after an upload that broke off", 1)

	_ = c.process.Stop() // SIGTERM: Azurite then writes its index
	for _, request := range []func() (*http.Response, error){
		func() (*http.Response, error) { return postFile(p, bytes.NewReader(content[1:])) },
		func() (*http.Response, error) { return p.Get(t.Context(), kept.URL, "") },
	} {
		resp, err := request()
		if problem := kit.ReadProblem(t, resp, err); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("during the outage: got %d %+v, want 503", resp.StatusCode, problem)
		}
	}
	c.start(t)
	wantBytes(t, p, kept.URL, "", content)
	second := mustPost(t, p, bytes.NewReader(content[1:]))
	c.wantObjects(t, "after the outage", 2)

	killed := beginUpload(t, p, content[:12<<20])
	if c.isS3() {
		c.awaitParts(t, "before the kill", func(n int) bool { return n == 1 })
	}
	p.Kill()
	killed.end(t, io.ErrUnexpectedEOF)
	p.Start(t)
	sweepFiles(t, p, c.url)
	c.awaitParts(t, "after the sweep", func(n int) bool { return n == 0 })
	c.wantObjects(t, "after the sweep", 2)
	wantBytes(t, p, kept.URL, "", content)
	for _, f := range []uploadedFile{kept, second} {
		p.StartCommand(t, "file", "rm", f.ID).Finish(t, 0)
	}
	c.wantObjects(t, "after the deletions", 0)
}

// postFile uploads a file.
func postFile(p *kit.Perdure, body io.Reader) (*http.Response, error) {
	return http.Post(p.URL("/v1/files?name=a.bin"), "application/octet-stream", body)
}

// mustPost uploads a file, which must succeed.
func mustPost(t *testing.T, p *kit.Perdure, body io.Reader) (f uploadedFile) {
	t.Helper()
	resp, err := postFile(p, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(answer, &f)
	}
	if err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("upload: got %s %s (%v), want 201", resp.Status, answer, err)
	}
	return f
}

// wantBytes checks the bytes of a file, or of a range of it.
func wantBytes(t *testing.T, p *kit.Perdure, path, byteRange string, want []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || sha256.Sum256(got) != sha256.Sum256(want) {
		t.Errorf("%s %s: got %s with %d bytes (%v), want the %d of the upload", path, byteRange, resp.Status, len(got), err, len(want))
	}
}

// upload is an upload whose body has no end yet.
type upload struct {
	body  *io.PipeWriter
	ended chan error
}

// beginUpload sends the first bytes of a file.
func beginUpload(t *testing.T, p *kit.Perdure, first []byte) *upload {
	t.Helper()
	body, sent := io.Pipe()
	u := &upload{sent, make(chan error, 1)}
	go func() {
		resp, err := postFile(p, body)
		if err == nil {
			err = fmt.Errorf("the answer is %s", resp.Status)
			_ = resp.Body.Close()
		}
		u.ended <- err
	}()
	if _, err := sent.Write(first); err != nil {
		t.Fatal(err)
	}
	return u
}

// end breaks the upload off, and waits for its end.
func (u *upload) end(t *testing.T, reason error) {
	t.Helper()
	_ = u.body.CloseWithError(reason)
	t.Logf("the upload broke off: %v", <-u.ended)
}

// sweepFiles sweeps the files of a process as one of its rounds does in three hours.
func sweepFiles(t *testing.T, p *kit.Perdure, url string) {
	t.Helper()
	where, err := p.Addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(where.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	log, err := stream.Open(t.Context(), nc, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storage, err := bucket.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	store, err := files.Open(t.Context(), log, files.Options{Storage: storage})
	if err != nil {
		t.Fatal(err)
	}
	index, err := store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer index.Stop()
	exists := func(context.Context, stream.Thread) (bool, error) { return true, nil }
	if err := store.Sweep(t.Context(), index, time.Now().Add(3*time.Hour), exists); err != nil {
		t.Error(err)
	}
}
