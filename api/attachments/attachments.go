package attachments

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/api/access"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth/policy"
	"github.com/perdure/perdure/internal/control/quota"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
)

// minExtracted is the size from which base64 data becomes a file, in characters. Smaller data, such as
// icons, costs less in the message.
const minExtracted = 8 << 10

// Attachments extracts and checks the files of messages. It has no state of its own, and is safe for
// concurrent use.
type Attachments struct {
	Store  *files.Store
	Index  *files.Index
	Access *access.Guard
	Meter  *quota.Meter
}

// Extracted has the data of base64 parts that Extract has replaced, by the IDs of their files.
type Extracted map[string]files.Upload

// Extract returns the messages of a thread with the URLs of files in place of base64 data, and the data. It
// treats the data of data: URLs like base64 data. It writes nothing: Attach stores the files. The same message has the same
// files each time, so a client that sends its list again sends what the thread has. isKnown reports whether
// the thread has a message as it is: it stays.
func (a *Attachments) Extract(ctx context.Context, thread stream.Thread, messages []agui.Message, isKnown func(agui.Message) bool) ([]agui.Message, Extracted, error) {
	extracted := Extracted{}
	var changed []agui.Message
	for i, m := range messages {
		if !hasData(m) || isKnown(m) {
			continue
		}
		content, err := a.extract(ctx, thread, m.Content, extracted)
		if err != nil {
			return nil, nil, problem.Within(fmt.Sprintf("/messages/%d/content", i), err)
		}
		if changed == nil {
			changed = append(changed, messages...)
		}
		changed[i].Content = content
	}
	if changed == nil {
		return messages, extracted, nil
	}
	return changed, extracted, nil
}

// hasData reports whether a part of a message has data to extract, or a data: URL.
func hasData(m agui.Message) bool {
	if m.Content.IsText() {
		return false
	}
	for _, p := range m.Content.Parts() {
		if isData(p) || isDataURL(p) {
			return true
		}
	}
	return false
}

func isData(p agui.ContentPart) bool {
	return p.Source != nil && p.Source.Type == agui.SourceData && len(p.Source.Value) >= minExtracted
}

// extract returns content with URLs of files in place of data. The error has the pointer to the part.
func (a *Attachments) extract(ctx context.Context, thread stream.Thread, content agui.Content, extracted Extracted) (agui.Content, error) {
	parts := append([]agui.ContentPart(nil), content.Parts()...)
	for i, p := range parts {
		if isDataURL(p) {
			source, err := inline(*p.Source)
			if err != nil {
				return content, problem.BadRequest("invalid_input", fmt.Sprintf("/%d/source/value", i), err.Error())
			}
			p.Source, parts[i].Source = source, source
		}
		if !isData(p) {
			continue
		}
		data, err := decode(p.Source.Value)
		if err != nil {
			continue // the part stays, and the model is told that it is not base64
		}
		u := files.Upload{Tenant: thread.Tenant, Owner: request.Caller(ctx).Subject, Name: nameOf(p), Type: files.TypeOf(p.Source.MimeType, data), Thread: thread.ID}
		if int64(len(data)) > a.Store.MaxSize() {
			return content, problem.BadRequest("invalid_input", fmt.Sprintf("/%d/source/value", i), fmt.Sprintf("may have at most %d bytes", a.Store.MaxSize()))
		}
		if u.ID, err = a.Store.ExtractedID(ctx, thread.Tenant, thread.ID, u.Type, u.Name, data); err != nil {
			return content, err
		}
		u.Body = bytes.NewReader(data)
		extracted[u.ID] = u
		source := *p.Source
		source.Type, source.Value, source.MimeType = agui.SourceURL, files.Path+u.ID, u.Type
		parts[i].Source = &source
	}
	return agui.PartsContent(parts), nil
}

// decode decodes base64 with or without padding.
func decode(text string) ([]byte, error) {
	if strings.HasSuffix(text, "=") || len(text)%4 == 0 {
		return base64.StdEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// nameOf returns the file name in the metadata of a part; "" = it has none.
func nameOf(p agui.ContentPart) string {
	var metadata struct {
		Filename string `json:"filename"`
	}
	_ = json.Unmarshal(p.Metadata, &metadata) // metadata may be any JSON
	return CleanName(metadata.Filename)
}

// Attach stores the extracted files of new messages, checks that the caller may read the other ones, and
// adds the thread to all of them. pointer returns the JSON pointer to a message. A repetition needs the data of
// another call of Extract. Errors, with the pointer to the part: 403 forbidden, 404 unknown_file, 409
// too_many_references, 422 file_infected, 429 quota_exceeded.
func (a *Attachments) Attach(ctx context.Context, thread stream.Thread, accepted stream.Acceptance, extracted Extracted, pointer func(messageID string) string) error {
	attach := func(m *agui.Message) error {
		for i, p := range m.Content.Parts() {
			if p.Source == nil || p.Source.Type != agui.SourceURL {
				continue
			}
			if err := a.attachPart(ctx, thread, p.Source.Value, extracted); err != nil {
				return problem.Within(fmt.Sprintf("%s/content/%d/source/value", pointer(m.ID), i), err)
			}
		}
		return nil
	}
	for _, tail := range accepted.Tail {
		if tail.Message == nil {
			continue
		}
		if err := attach(tail.Message); err != nil {
			return err
		}
	}
	for i := range accepted.Updated {
		if err := attach(&accepted.Updated[i]); err != nil {
			return err
		}
	}
	return nil
}

// attachPart attaches the file of a URL. Other URLs are not those of files.
func (a *Attachments) attachPart(ctx context.Context, thread stream.Thread, url string, extracted Extracted) error {
	if !strings.HasPrefix(url, files.Path) {
		return nil
	}
	id, ok := files.IDOf(url)
	if !ok {
		return problem.Unknown("file", strings.TrimPrefix(url, files.Path))
	}
	if u, ok := extracted[id]; ok {
		return a.store(ctx, thread, u)
	}
	if _, err := a.Readable(ctx, thread.Tenant, id); err != nil {
		return err
	}
	// Also if the thread refers to it: the reference may be old, and a sweep end it before the thread begins.
	return Problem(id, a.Store.Attach(ctx, thread.Tenant, id, thread.ID))
}

// store stores an extracted file, unless it exists.
func (a *Attachments) store(ctx context.Context, thread stream.Thread, u files.Upload) error {
	err := a.Store.Attach(ctx, thread.Tenant, u.ID, thread.ID)
	if !errors.Is(err, files.ErrUnknown) {
		return Problem(u.ID, err)
	}
	_, err = a.Put(ctx, u, u.Body.(*bytes.Reader).Size()) //nolint:forcetypeassert // extract makes it
	return Problem(u.ID, err)
}

// Put stores a file of at most size bytes, if the quota of its tenant has room for it and for all
// uploads that are under way. Errors: *quota.ExceededError, and those of [files.Store.Put].
func (a *Attachments) Put(ctx context.Context, u files.Upload, size int64) (*files.File, error) {
	release, err := a.Reserve(ctx, u.Tenant, size)
	if err != nil {
		return nil, err
	}
	defer release()
	return a.Store.Put(ctx, u)
}

// Reserve counts the bytes of an upload in the quota of its tenant until the caller calls release.
// Errors: *quota.ExceededError, stream.ErrUnavailable.
func (a *Attachments) Reserve(ctx context.Context, tenant string, size int64) (release func(), err error) {
	if err := a.Meter.CheckMore(ctx, tenant, quota.FileBytes, size); err != nil {
		return nil, err
	}
	if release, err = a.Index.Reserve(ctx, tenant, size); err != nil {
		return nil, err
	}
	if err := a.Meter.CheckMore(ctx, tenant, quota.FileBytes, 0); err != nil { // counts the upload itself
		release()
		return nil, err
	}
	return release, nil
}

// Readable returns a file of a tenant that the caller may read: its own, or one of a thread that the
// caller may read. Errors: 404 unknown_file, 403 forbidden.
func (a *Attachments) Readable(ctx context.Context, tenant, id string) (*files.File, error) {
	f, err := a.Store.Find(ctx, tenant, id)
	if err != nil {
		return nil, Problem(id, err)
	}
	denied := a.Access.CheckFile(ctx, f.Owner, policy.ReadFile)
	if denied == nil {
		return f, nil
	}
	for thread := range f.Threads {
		if a.Access.Check(ctx, stream.Thread{Tenant: tenant, ID: thread}, policy.ReadThread) == nil {
			return f, nil
		}
	}
	return nil, denied
}

// Release removes a thread that is deleted from its files, and deletes those that no other thread
// refers to.
func (a *Attachments) Release(ctx context.Context, thread stream.Thread) error {
	for _, id := range a.Index.OfThread(thread) {
		if err := a.Store.Release(ctx, thread.Tenant, id, thread.ID); err != nil {
			return err
		}
	}
	return nil
}

// Share adds a fork to the threads of the files to which its messages refer. It leaves out files that were
// deleted, and those that are not of the thread that is forked: a tool or a model may write any URL.
func (a *Attachments) Share(ctx context.Context, from, fork stream.Thread, messages iter.Seq[agui.Message]) error {
	for m := range messages {
		for _, p := range m.Content.Parts() {
			if p.Source == nil || p.Source.Type != agui.SourceURL {
				continue
			}
			id, ok := files.IDOf(p.Source.Value)
			if !ok {
				continue
			}
			if err := a.share(ctx, from, fork, id); err != nil && !errors.Is(err, files.ErrUnknown) {
				return Problem(id, err)
			}
		}
	}
	return nil
}

// share adds a fork to the threads of a file, if the thread that is forked is one of them. Errors:
// files.ErrUnknown, files.ErrManyThreads.
func (a *Attachments) share(ctx context.Context, from, fork stream.Thread, id string) error {
	f, err := a.Store.Find(ctx, fork.Tenant, id)
	if err != nil || !f.IsOf(from.ID) {
		return err
	}
	return a.Store.Attach(ctx, fork.Tenant, id, fork.ID)
}

// Problem maps an error of files about a file to its answer. Other errors, and nil, are returned
// unchanged.
func Problem(id string, err error) error {
	threat, isThreat := errors.AsType[*files.ThreatError](err)
	switch {
	case errors.Is(err, files.ErrUnknown):
		return problem.Unknown("file", id)
	case errors.Is(err, files.ErrManyThreads):
		return problem.New(http.StatusConflict, "too_many_references", "too many threads refer to the file: upload it again, and use the new file")
	case isThreat:
		return problem.New(http.StatusUnprocessableEntity, problem.CodeFileInfected, fmt.Sprintf("the virus scanner has found %.200q, and the file was not stored", threat.Threat))
	}
	return err
}

// maxNameBytes bounds the name of a file.
const maxNameBytes = 255

// CleanName returns the name of a file without folders, without characters that would show it as
// another one (see [stream.PlainText]), and cut to the largest length.
func CleanName(name string) string {
	name = stream.PlainText(name[strings.LastIndexAny(name, `/\`)+1:])
	return strings.ToValidUTF8(name[:min(len(name), maxNameBytes)], "")
}
