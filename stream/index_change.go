package stream

import (
	"context"
	"time"
)

// This file changes what only the entry of a thread in the index has. ownership.go has the shares.

// SetTitle gives a thread a title; "" = the title that it would have without. It returns the
// description of the thread after it. Like Share it needs the entry of the thread, and the last of
// two calls wins. Errors: ErrNotListed.
func (l *Log) SetTitle(ctx context.Context, t Thread, title string) (*Description, error) {
	entry, err := l.changeEntry(ctx, t, func(entry *IndexEntry) bool { entry.GivenTitle = title; return true })
	if err != nil {
		return nil, err
	}
	return &entry.Description, nil
}

// SetModelTitle gives a thread the title that a model has written; see Description. begun is the time
// of the thread's first record: it changes nothing if another thread has the ID meanwhile. Like Share
// it needs the entry of the thread. Errors: ErrNotListed.
func (l *Log) SetModelTitle(ctx context.Context, t Thread, begun time.Time, title string) error {
	begun = begun.UTC().Truncate(time.Millisecond)
	_, err := l.changeEntry(ctx, t, func(entry *IndexEntry) bool {
		if !entry.CreatedAt.Equal(begun) || entry.ModelTitle == title {
			return false
		}
		entry.ModelTitle = title
		return true
	})
	return err
}

// SetMetadata replaces the metadata of a thread; see SetTitle.
func (l *Log) SetMetadata(ctx context.Context, t Thread, metadata map[string]string) (*Description, error) {
	entry, err := l.changeEntry(ctx, t, func(entry *IndexEntry) bool { entry.Metadata = metadata; return true })
	if err != nil {
		return nil, err
	}
	return &entry.Description, nil
}

// Entry returns the entry of a thread in the index; nil = the index does not have the thread.
func (l *Log) Entry(ctx context.Context, t Thread) (*IndexEntry, error) {
	entry, _, err := l.readEntry(ctx, l.indexKey(l.ThreadSubject(t)))
	if err != nil || entry.Seq == 0 || entry.Purged {
		return nil, err
	}
	return &entry, nil
}

// SetRetrying lists the active run of a thread as retrying. It does nothing if the index has another
// run of the thread, or the end of this one: the entries about the beginning and the end of a run
// have no Retrying.
func (l *Log) SetRetrying(ctx context.Context, run Run, r Retrying) error {
	r.Since = r.Since.UTC().Truncate(time.Millisecond)
	_, err := l.changeEntry(ctx, run.Thread, func(entry *IndexEntry) bool {
		if !entry.isActive(run) {
			return false
		}
		entry.Retrying = &r
		return true
	})
	return err
}

// ClearRetrying removes what SetRetrying has listed about a step of a run.
func (l *Log) ClearRetrying(ctx context.Context, run Run, step string) error {
	_, err := l.changeEntry(ctx, run.Thread, func(entry *IndexEntry) bool {
		if !entry.isActive(run) || entry.Retrying == nil || entry.Retrying.Step != step {
			return false
		}
		entry.Retrying = nil
		return true
	})
	return err
}

// isActive reports whether the index lists the run as active.
func (e *IndexEntry) isActive(run Run) bool {
	return e.RunID == run.Shown() && (e.Status == StatusRunning || e.Status == StatusPaused)
}
