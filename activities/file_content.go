package activities

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/activities/prompt"
	"github.com/perdure/perdure/agui"
	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/llm"
	"github.com/perdure/perdure/stream"
	"github.com/perdure/perdure/stream/snapshot"
)

// This file reads the files of messages for a request: models and remote agents receive their bytes,
// because they have no credentials for the URLs.

const (
	// maxFile bounds the bytes of one file in a request, and maxRequestFiles those of all of them.
	// Providers take requests of 20 to 50 MB, and base64 adds a third.
	maxFile         = 20 << 20
	maxRequestFiles = 30 << 20
)

// loadFiles returns entries of a thread with the bytes of files in place of their URLs. The newest files
// have precedence. A file that is missing or too large becomes a part that no model receives, with the
// reason. loadFiles blocks while other requests have the memory (maxLoaded). The caller calls release when
// nothing refers to the bytes anymore: the client of a remote agent drops its request at the first event, that
// of a model keeps it until the end of the call. Further calls of release have no effect.
func (a *Activities) loadFiles(ctx context.Context, thread stream.Thread, entries []snapshot.Entry) (loaded []snapshot.Entry, release func(), err error) {
	l := &fileLoader{FileStore: a.Files, thread: thread, files: map[string]*files.File{}, chosen: map[place]*files.File{}, reasons: map[place]llm.Unusable{}}
	for i, e := range slices.Backward(entries) {
		if !hasFiles(e.Message) {
			continue
		}
		if err := l.choose(ctx, i, e.Message.Content); err != nil {
			return nil, nil, fmt.Errorf("activities: file of message %s: %w", e.Message.ID, err)
		}
	}
	if len(l.chosen)+len(l.reasons) == 0 {
		return entries, func() {}, nil
	}
	// All at once: requests that wait for the rest of their room could wait for each other.
	if l.size > 0 {
		if err := l.room.Acquire(ctx, l.size); err != nil {
			return nil, nil, err
		}
	}
	release = sync.OnceFunc(func() {
		if l.size > 0 {
			l.room.Release(l.size)
		}
	})
	loaded = slices.Clone(entries)
	for i, e := range entries {
		if !hasFiles(e.Message) {
			continue
		}
		if loaded[i].Message.Content, err = l.load(ctx, i, e.Message.Content); err != nil {
			release()
			return nil, nil, fmt.Errorf("activities: file of message %s: %w", e.Message.ID, err)
		}
	}
	return loaded, release, nil
}

// hasFiles reports whether a message has the URL of a file.
func hasFiles(m agui.Message) bool {
	return !m.Content.IsText() && slices.ContainsFunc(m.Content.Parts(), isFile)
}

// isFile reports whether a part has the URL of a file.
func isFile(p agui.ContentPart) bool {
	if p.Source == nil || p.Source.Type != agui.SourceURL {
		return false
	}
	_, ok := files.IDOf(p.Source.Value)
	return ok
}

// fileLoader loads the files of one request.
type fileLoader struct {
	FileStore

	thread stream.Thread
	files  map[string]*files.File // by ID; nil = the thread has no such file
	// chosen and reasons are the decisions. A request has the bytes of a file once for each part that
	// refers to it, so each counts.
	chosen  map[place]*files.File
	reasons map[place]llm.Unusable
	size    int64 // of the chosen files
}

// place is a part of a request: the index of its entry, and its own index in the content.
type place struct{ entry, part int }

// choose finds the files of the content of an entry, and decides which ones are loaded.
func (l *fileLoader) choose(ctx context.Context, entry int, content agui.Content) error {
	for i, p := range content.Parts() {
		if !isFile(p) {
			continue
		}
		id, _ := files.IDOf(p.Source.Value)
		f, err := l.find(ctx, id)
		if err != nil {
			return err
		}
		at := place{entry, i}
		switch {
		case f == nil:
			l.reasons[at] = llm.UnusableFile
		case f.Size > maxFile, l.size+f.Size > maxRequestFiles:
			l.reasons[at] = llm.UnusableSize
		default:
			l.chosen[at], l.size = f, l.size+f.Size
		}
	}
	return nil
}

// find returns a file of the thread; nil = it has no such file.
func (l *fileLoader) find(ctx context.Context, id string) (*files.File, error) {
	if f, isKnown := l.files[id]; isKnown || l.store == nil {
		return f, nil
	}
	f, err := l.store.Find(ctx, l.thread.Tenant, id)
	switch {
	case errors.Is(err, files.ErrUnknown):
		f = nil
	case err != nil:
		return nil, err
	case !f.IsOf(l.thread.ID): // the API attaches the files of inputs: a model or a tool wrote this URL
		f = nil
	}
	l.files[id] = f
	return f, nil
}

// load returns the content of an entry with the bytes of the chosen files, and the reasons in place of
// others.
func (l *fileLoader) load(ctx context.Context, entry int, content agui.Content) (agui.Content, error) {
	parts := slices.Clone(content.Parts())
	for i, p := range parts {
		if !isFile(p) {
			continue
		}
		at := place{entry, i}
		f := l.chosen[at]
		if f == nil {
			parts[i].Source = prompt.Unavailable(*p.Source, l.reasons[at])
			continue
		}
		data, err := l.read(ctx, f)
		switch {
		case errors.Is(err, files.ErrUnknown): // it was deleted meanwhile
			parts[i].Source = prompt.Unavailable(*p.Source, llm.UnusableFile)
		case err != nil:
			return content, err
		default:
			source := *p.Source
			source.Type, source.Value, source.MimeType = agui.SourceData, data, f.Type
			parts[i].Source = &source
		}
	}
	return agui.PartsContent(parts), nil
}

// read returns the bytes of a file in base64.
func (l *fileLoader) read(ctx context.Context, f *files.File) (string, error) {
	content, err := l.store.Open(ctx, f)
	if err != nil {
		return "", err
	}
	defer content.Close() //nolint:errcheck // it was read
	var text strings.Builder
	text.Grow(base64.StdEncoding.EncodedLen(int(f.Size)))
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	if _, err := io.Copy(encoder, content); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil { // before the text is taken: it writes the end
		return "", err
	}
	return text.String(), nil
}

// replaceLoaded returns entries with the loaded ones in place of those of the same messages.
func replaceLoaded(entries, loaded []snapshot.Entry) []snapshot.Entry {
	withFiles := map[string]snapshot.Entry{}
	for _, e := range loaded {
		if !e.Message.Content.IsText() {
			withFiles[e.Message.ID] = e
		}
	}
	if len(withFiles) == 0 {
		return entries
	}
	replaced := slices.Clone(entries)
	for i, e := range entries {
		if l, ok := withFiles[e.Message.ID]; ok {
			replaced[i] = l
		}
	}
	return replaced
}
