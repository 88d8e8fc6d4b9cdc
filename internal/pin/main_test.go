package main

import (
	"bytes"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// startRegistry starts a registry on loopback, and returns its address.
func startRegistry(t *testing.T) string {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials of the user
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// pushImage pushes a new image for one platform under a tag, and returns its digest.
func pushImage(t *testing.T, image string) string {
	t.Helper()
	content, err := random.Image(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	return push(t, image, content, remote.Write)
}

// pushIndex pushes new images for two platforms under a tag, and returns the digest of their index.
func pushIndex(t *testing.T, image string) string {
	t.Helper()
	index, err := random.Index(16, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	return push(t, image, index, remote.WriteIndex)
}

func push[T interface{ Digest() (v1.Hash, error) }](t *testing.T, image string, content T, write func(name.Reference, T, ...remote.Option) error) string {
	t.Helper()
	tag, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(tag, content); err != nil {
		t.Fatal(err)
	}
	digest, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// projectImage matches the images in the files of this repository. Stages and the images that
// Compose builds have no tag.
var projectImage = regexp.MustCompile(`(?m)^(# syntax=|FROM (?:--platform=\S+ )?|\s*image: )([^\s@]+:[^\s@]+)(?:@\S+)?`)

// TestProject: a copy of this repository's files, whose images are in a registry on loopback, is
// pinned; moved tags are found and pinned again.
func TestProject(t *testing.T) {
	host, dir := startRegistry(t), t.TempDir()
	paths := []string{filepath.Join(dir, "Dockerfile"), filepath.Join(dir, "docker-compose.yml"), filepath.Join(dir, "deploy")}
	if err := os.CopyFS(paths[2], os.DirFS("../../deploy")); err != nil {
		t.Fatal(err)
	}
	digests, unpinned := map[string]string{}, map[string]string{}
	for _, path := range paths[:2] {
		original, err := os.ReadFile(filepath.Join("../..", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		unpinned[path] = projectImage.ReplaceAllString(string(original), "${1}"+host+"/${2}")
		images := projectImage.FindAllStringSubmatch(unpinned[path], -1)
		if len(images) < 3 {
			t.Fatalf("images of %s = %d, want at least 3", path, len(images))
		}
		for _, image := range images {
			if digests[image[2]] == "" {
				digests[image[2]] = pushIndex(t, image[2])
			}
		}
		save(t, path, unpinned[path])
	}
	wantPinned := func() {
		t.Helper()
		for path, text := range unpinned {
			want := projectImage.ReplaceAllStringFunc(text, func(match string) string {
				return match + "@" + digests[projectImage.FindStringSubmatch(match)[2]]
			})
			if got := load(t, path); got != want {
				t.Errorf("%s = %s\nwant %s", path, got, want)
			}
		}
	}
	wantFailure(t, "has no digest", append([]string{"-check"}, paths...)...)
	for path, text := range unpinned {
		if load(t, path) != text {
			t.Errorf("-check changes %s", path)
		}
	}
	wantSuccess(t, paths...)
	wantPinned()
	wantSuccess(t, append([]string{"-check"}, paths...)...)

	// One tag moves to another index, one to an image for one platform.
	images := slices.Sorted(maps.Keys(digests))
	digests[images[0]] = pushIndex(t, images[0])
	digests[images[1]] = pushImage(t, images[1])
	for _, image := range images[:2] {
		wantFailure(t, "the registry has "+digests[image], append([]string{"-check"}, paths...)...)
	}
	wantSuccess(t, paths...)
	wantPinned()
}

// TestReferences: what is an image of a registry in a file, and what is not. Pin adds and renews the
// digest of PINNED, and keeps the image KEPT.
func TestReferences(t *testing.T) {
	image := startRegistry(t) + "/team/a:1"
	digest := pushImage(t, image)
	for _, c := range []struct{ name, file, text string }{
		{"frontend", "Dockerfile", "# syntax=PINNED\n# image=KEPT\nFROM scratch\n"},
		{"stages", "Dockerfile", "from --platform=$BUILDPLATFORM PINNED as One\nFROM one AS two\nFROM One\n"},
		{"comments and commands", "Dockerfile", "FROM scratch\n# FROM KEPT\nRUN echo FROM KEPT --from=KEPT\n"},
		{"default of an ARG", "Dockerfile", "ARG BASE=\"PINNED\"\nARG OTHER=KEPT\nFROM ${BASE} AS x\nFROM $BASE\n"},
		{"COPY", "api.Dockerfile", "FROM PINNED AS x\nCOPY --chown=1 --from=PINNED /a /b\nCOPY --from=x /a /b\nCOPY --from=0 /a /b\n"},
		{"RUN", "Dockerfile.api", "RUN --mount=type=bind,from=PINNED,target=/a --mount=from=PINNED x\n"},
		{"carriage returns", "Dockerfile", "FROM PINNED\r\nFROM PINNED"},
		{"built by Compose", "compose.yaml", "services: {a: {image: KEPT, build: .}, b: {image: PINNED}}\n"},
		{"quotes and flow", "compose.yaml", "ä: {x: 'KEPT', image: \"PINNED\", y: KEPT}\n"},
		{"anchors", "compose.yaml", "x: &x PINNED\ny: &y\n  image: *x # KEPT\na: {<<: *y}\nb: {image: &z PINNED}\nc: {image: *z}\n"},
		{"Kubernetes", "pods.yml", "spec:\n  containers:\n    - image: PINNED\n      name: a\n---\nimage: {repository: KEPT}\n---\nimage: 'PINNED'\n"},
		{"another kind", "setup.sh", "image: KEPT\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, c.file)
			fill := func(pinned string) string {
				return strings.NewReplacer("PINNED", pinned, "KEPT", image).Replace(c.text)
			}
			for _, before := range []string{image, image + "@sha256:00"} {
				save(t, path, fill(before))
				wantSuccess(t, dir)
				if got, want := load(t, path), fill(image+"@"+digest); got != want {
					t.Errorf("file = %q, want %q", got, want)
				}
			}
		})
	}
}

// TestFailures: an error names the file, the line and the image. It leaves all files as they are.
func TestFailures(t *testing.T) {
	host := startRegistry(t)
	pushImage(t, host+"/a:1")
	for text, want := range map[string]string{
		"FROM HOST/a:2":                     "Dockerfile:2: the digest of HOST/a:2: ",
		"FROM HOST/a":                       "Dockerfile:2: HOST/a has no tag",
		"FROM HOST/a@sha256:00":             "Dockerfile:2: HOST/a has no tag",
		"ARG V=1\nFROM HOST/a:$V":           "Dockerfile:3: HOST/a:$V has a variable",
		"FROM HOST/A:1":                     "Dockerfile:2: ",
		"COPY --from=unknown-stage /a /b\n": "Dockerfile:2: unknown-stage has no tag",
	} {
		dir, text := t.TempDir(), "FROM HOST/a:1\n"+text
		text, want = strings.ReplaceAll(text, "HOST", host), strings.ReplaceAll(want, "HOST", host)
		path := filepath.Join(dir, "Dockerfile")
		save(t, path, text)
		wantFailure(t, want, dir)
		if got := load(t, path); got != text {
			t.Errorf("file after %q = %q, want %q", want, got, text)
		}
	}
	dir := t.TempDir()
	save(t, filepath.Join(dir, "bad.yaml"), "image: >-\n  a:1\n")
	save(t, filepath.Join(dir, "image"), "a:1\n")
	wantFailure(t, `bad.yaml: line 1: write the image "a:1" on the line of its key`, dir)
	wantFailure(t, "image is neither a Dockerfile nor a YAML file", filepath.Join(dir, "image"))
	wantFailure(t, "no such file", filepath.Join(dir, "absent"))
	wantFailure(t, "name the files", "-check")
}

func wantSuccess(t *testing.T, args ...string) {
	t.Helper()
	if err := run(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatalf("pin %s: %v", args, err)
	}
}

func wantFailure(t *testing.T, want string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("pin %s: error = %v, output = %q, want an error with %q", args, err, out.String(), want)
	}
}

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
