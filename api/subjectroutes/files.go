package subjectroutes

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/files"
	"github.com/perdure/perdure/stream"
)

// addFiles adds the files that the subject has uploaded.
func (e *export) addFiles(ctx context.Context) error {
	if e.Files == nil {
		return nil
	}
	for _, indexed := range e.Files.Index.List(e.tenant, e.subject, "") {
		f, err := e.Files.Store.Find(ctx, e.tenant, indexed.ID) // the index has no names
		if errors.Is(err, files.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		if err := e.add(line{Kind: kindFile, File: &exportedFile{f.ID, f.URL(), f.Name, f.Type, f.Size, f.CreatedAt}}); err != nil {
			return err
		}
	}
	return nil
}

// deleteFiles deletes the files of the subject to which no thread refers. The others are deleted with
// the last of their threads. It keeps those to which a thread refers that stays.
func (w *work) deleteFiles(ctx context.Context) error {
	if w.Files == nil {
		return nil
	}
	stays := w.threadStays()
	for _, f := range w.Files.Index.List(w.tenant, w.subject, "") {
		if len(f.Threads) > 0 {
			isKept, err := anyThread(ctx, f, stays)
			if err != nil {
				return err
			}
			if isKept {
				w.keep("file", f.ID, "a thread that stays refers to the file: it is deleted with the last of its threads")
			}
			continue
		}
		w.report.Deleted.Files = append(w.report.Deleted.Files, f.ID)
		if w.report.DryRun {
			continue
		}
		if err := w.Files.Store.DeleteUnused(ctx, w.tenant, f.ID); err != nil {
			return err
		}
	}
	return nil
}

// anyThread reports whether a thread that refers to a file has a property.
func anyThread(ctx context.Context, f *files.File, has func(context.Context, string) (bool, error)) (bool, error) {
	for thread := range f.Threads {
		if found, err := has(ctx, thread); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// threadStays returns a function that reports whether the deletion leaves a thread, because of another
// owner or of a legal hold. It finds that out once for each thread.
func (w *work) threadStays() func(ctx context.Context, id string) (bool, error) {
	known := map[string]bool{}
	return func(ctx context.Context, id string) (bool, error) {
		if stays, ok := known[id]; ok {
			return stays, nil
		}
		stays, err := w.stays(ctx, stream.Thread{Tenant: w.tenant, ID: id})
		if err == nil {
			known[id] = stays
		}
		return stays, err
	}
}

// stays reports whether the deletion leaves a thread.
func (w *work) stays(ctx context.Context, thread stream.Thread) (bool, error) {
	access, err := w.accessTo(ctx, thread)
	switch {
	case errors.Is(err, stream.ErrGone): // the thread is being deleted
		return false, nil
	case err != nil:
		return false, err
	case access.Owner == nil || *access.Owner != w.subject:
		return true, nil
	}
	err = w.Deletion.CheckHold(ctx, thread)
	if isHeld(err) {
		return true, nil
	}
	return false, err
}

// deleteUploads deletes the resumable uploads of the subject, before its files: none of them becomes a
// file afterwards.
func (w *work) deleteUploads(ctx context.Context) error {
	if w.Files == nil {
		return nil
	}
	for _, id := range w.Files.Index.Uploads(w.tenant, w.subject) {
		w.report.Deleted.Uploads = append(w.report.Deleted.Uploads, id)
		if w.report.DryRun {
			continue
		}
		if err := w.Files.Store.DeleteUpload(ctx, w.tenant, id); err != nil {
			return err
		}
	}
	return nil
}
