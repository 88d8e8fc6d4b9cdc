package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// baseCommit returns the abbreviated commit to compare with, "" if there is none.
func (b *bench) baseCommit(ctx context.Context) (string, error) {
	if b.plan.base == "" {
		return "", nil
	}
	commit, err := output(ctx, b.this.root, "git", "rev-parse", "--verify", "--short", b.plan.base+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("-base: %q is no commit: %w", b.plan.base, err)
	}
	return commit, nil
}

// checkOut makes a worktree of the commit to compare with, in the bench's directory. leave removes it.
func (b *bench) checkOut(ctx context.Context) (build, error) {
	base := build{commit: b.base, root: filepath.Join(b.dir, "base"), bin: filepath.Join(b.dir, "base-bin")}
	_, err := output(ctx, b.this.root, "git", "worktree", "add", "--detach", base.root, base.commit)
	return base, err
}

// leave removes the worktree of a build.
func (b *bench) leave(ctx context.Context, base build) {
	if _, err := output(context.WithoutCancel(ctx), b.this.root, "git", "worktree", "remove", "--force", base.root); err != nil {
		b.tell("%v", err)
	}
}

// pair builds the commit to compare with, and measures it and this tree in turns.
func (b *bench) pair(ctx context.Context) (*pairing, error) {
	base, err := b.checkOut(ctx)
	if err != nil {
		return nil, err
	}
	defer b.leave(ctx, base)
	if err := b.compile(ctx, base); err != nil {
		return nil, err
	}
	return b.pairAll(ctx, base)
}
