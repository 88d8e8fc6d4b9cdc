package files

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/stream"
)

// Path begins the URL of a file, which its ID follows.
const Path = "/v1/files/"

// Lifetime is how long a file lives to which no thread refers.
const Lifetime = 24 * time.Hour

// maxThreads bounds the threads that refer to one file: its entry has all of them.
const maxThreads = 1_000

// Errors of files.
var (
	// ErrUnknown tells that the tenant has no such file.
	ErrUnknown = errors.New("files: unknown file")
	// ErrTooLarge tells that a file exceeds the largest size.
	ErrTooLarge = errors.New("files: the file is too large")
	// ErrEmpty tells that a file has no bytes.
	ErrEmpty = errors.New("files: the file is empty")
	// ErrManyThreads tells that as many threads refer to a file as may.
	ErrManyThreads = fmt.Errorf("files: %d threads refer to the file", maxThreads)
)

// ThreatError tells that the scanner has found a threat in a file, which was therefore not stored.
type ThreatError struct {
	// Threat is the name that the scanner has for it.
	Threat string
}

// Error implements error.
func (e *ThreatError) Error() string { return "files: the scanner has found " + e.Threat }

// File is a file of a tenant. It is immutable.
type File struct {
	Tenant string `json:"tenant"`
	ID     string `json:"id"`
	// Name is the name that the caller has given; "" = none. The index has no names.
	Name string `json:"-"`
	// Type is the media type, by the content.
	Type string `json:"type"`
	Size int64  `json:"size"` // in bytes
	// Owner is the subject that has uploaded the file; "" = an anonymous caller.
	Owner     string    `json:"owner,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// Threads are the threads that refer to the file, by their IDs, with the times of the references.
	Threads map[string]time.Time `json:"threads,omitempty"`
	// IsKept tells that the file outlives its resumable upload, which was complete when it was deleted: a
	// concurrent FinishUpload does not remove the file.
	IsKept bool `json:"isKept,omitempty"`

	Content contentRef `json:"content"`
}

// contentRef is where the bytes of a file are: in a blob, whose digest finds other files with the same
// bytes.
type contentRef struct {
	Blob   string `json:"blob"`
	Digest string `json:"digest"`
}

// URL returns the URL of the file, relative to the API.
func (f *File) URL() string { return Path + f.ID }

// IsOf reports whether a thread refers to the file.
func (f *File) IsOf(thread string) bool {
	_, ok := f.Threads[thread]
	return ok
}

// Position orders the files of an owner by the time of their upload, and files of the same time by
// their IDs: it is a cursor of their list.
func (f *File) Position() string { return fmt.Sprintf("%016x.%s", f.CreatedAt.UnixNano(), f.ID) }

// IsPosition reports whether a text can be the position of a file.
func IsPosition(text string) bool {
	at, id, ok := strings.Cut(text, ".")
	return ok && len(at) == 16 && strings.Trim(at, "0123456789abcdef") == "" && isID(id)
}

// ExpiresAt returns when the file is deleted unless a thread refers to it by then; zero = a thread does.
func (f *File) ExpiresAt() time.Time {
	if len(f.Threads) > 0 {
		return time.Time{}
	}
	return f.CreatedAt.Add(Lifetime)
}

// IDOf returns the ID of the file that a URL refers to; false = it is not one of a file of this server.
func IDOf(url string) (id string, ok bool) {
	id, ok = strings.CutPrefix(url, Path)
	return id, ok && isID(id)
}

// idPrefix begins the ID of every file.
const idPrefix = "file_"

// isID reports whether a text can be the ID of a file: idPrefix and lower-case letters and digits.
func isID(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	return ok && rest != "" && len(rest) <= 64 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Keys of the bucket.
const (
	filePrefix    = "file."
	contentPrefix = "content."
	blobPrefix    = "blob."
	secretPrefix  = "secret."
)

func fileKey(tenant, id string) string { return filePrefix + stream.KeyToken(tenant) + "." + id }

func contentKey(tenant, digest string) string {
	return contentPrefix + stream.KeyToken(tenant) + "." + digest
}

func blobKey(tenant, blob string) string { return blobPrefix + stream.KeyToken(tenant) + "." + blob }
