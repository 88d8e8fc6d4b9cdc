package subjectroutes

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/files"
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
// the last of their threads.
func (w *work) deleteFiles(ctx context.Context) error {
	if w.Files == nil {
		return nil
	}
	for _, f := range w.Files.Index.List(w.tenant, w.subject, "") {
		if len(f.Threads) > 0 {
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
