package llm_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/llm"
)

// modelWithPauses is a model that sends one word after each pause, and then blocks until its
// context ends.
func modelWithPauses(pauses ...time.Duration) llm.Model {
	return llm.ModelFunc(func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Chunk, error] {
		return func(yield func(llm.Chunk, error) bool) {
			for _, pause := range pauses {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					yield(nil, context.Cause(ctx))
					return
				}
				if !yield(llm.TextDelta{Text: "word"}, nil) {
					return
				}
			}
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	})
}

func TestLimitSilence(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Minute
	for name, tt := range map[string]struct {
		model     llm.Model
		words     int
		wantAfter time.Duration
	}{
		"never a word":           {modelWithPauses(), 0, limit},
		"silent in the middle":   {modelWithPauses(time.Second, 4*time.Minute), 2, 4*time.Minute + time.Second + limit},
		"slow, but not silent":   {modelWithPauses(limit-1, limit-1, limit-1, limit-1), 4, 5*limit - 4},
		"the second is too late": {modelWithPauses(time.Second, limit+1), 1, time.Second + limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, words := time.Now(), 0
				var last error
				for chunk, err := range llm.LimitSilence(tt.model, limit).Stream(t.Context(), nil) {
					if last = err; chunk != nil {
						words++
					}
				}
				var failure *llm.Error
				if !errors.As(last, &failure) || failure.Code != llm.CodeTimeout || !failure.Retryable() {
					t.Errorf("it ended with %v, want %q", last, llm.CodeTimeout)
				}
				if took := time.Since(began); words != tt.words || took != tt.wantAfter {
					t.Errorf("%d words, ended after %s; want %d and %s", words, took, tt.words, tt.wantAfter)
				}
			})
		})
	}
}

// TestLimitSilenceWaitsForConsumer: the time that the consumer takes does not count as silence
// of the model.
func TestLimitSilenceWaitsForConsumer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		words := 0
		for _, err := range llm.LimitSilence(modelWithPauses(time.Second, time.Second), time.Minute).Stream(t.Context(), nil) {
			if err != nil {
				break
			}
			words++
			<-time.After(time.Hour) // on the fake clock
		}
		if words != 2 {
			t.Errorf("words: got %d, want 2", words)
		}
	})
}

func TestLimitSilenceForwardsCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer time.AfterFunc(time.Second, func() { cancel(enough) }).Stop()
		var last error
		for _, err := range llm.LimitSilence(modelWithPauses(), time.Minute).Stream(ctx, nil) {
			last = err
		}
		if !errors.Is(last, enough) {
			t.Errorf("it ended with %v, want the cause of ctx", last)
		}
	})
}

// textOnlyModel is a model that accepts no audio.
type textOnlyModel struct{ llm.Model }

func (textOnlyModel) Unusable(_ string, _ llm.Role, media llm.Media) llm.Unusable {
	if media.Kind == llm.MediaAudio {
		return llm.UnusableType
	}
	return ""
}

func TestLimitedModelReportsMedia(t *testing.T) {
	t.Parallel()
	for model, want := range map[llm.Model]llm.Unusable{textOnlyModel{}: llm.UnusableType, struct{ llm.Model }{}: ""} {
		reader, ok := llm.LimitSilence(model, time.Minute).(llm.MediaReader)
		if !ok || reader.Unusable("m", llm.RoleUser, llm.Media{Kind: llm.MediaAudio}) != want {
			t.Errorf("%T: answer about media differs, want that of the model", model)
		}
	}
}
