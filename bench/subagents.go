package main

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// subagents measures the time in which an agent delegates work to another agent. On both sides one
// model streams, then another one, and then the first one again; each token has the time at which
// it was sent.
func subagents(ctx context.Context, d *duel, n int) error {
	all, err := d.alternate(ctx, n, d.handOver, func(ctx context.Context) (outcome, error) {
		return d.temporally(ctx, "handing", plainWork{}, func(o *outcome, done plainDone) (err error) {
			o.handed, err = done.Spoken.handed()
			return err
		})
	})
	if err != nil {
		return err
	}
	d.note("from an agent's last token to the first of the one that works for it", "ms", middle(all[0], outcome.handedMillis), middle(all[1], outcome.handedMillis))
	d.note("all of the run, three answers of a model", "ms", middle(all[0], outcome.wallMillis), middle(all[1], outcome.wallMillis))
	d.note("… CPU of all processes", "ms", mean(all[0], outcome.cpuMillis), mean(all[1], outcome.cpuMillis))
	return nil
}

// handOver makes a run of an agent that delegates work to another agent.
func (d *duel) handOver(ctx context.Context) (outcome, error) {
	o, s, err := d.speech(ctx, handing)
	if err != nil {
		return o, err
	}
	o.handed, err = s.handed()
	return o, err
}

// speech makes a run of an agent and returns the outputs of its models.
func (d *duel) speech(ctx context.Context, agent pace) (o outcome, s spoken, err error) {
	o, err = d.perdure(ctx, string(agent), "{}", func(event []byte) error {
		if !bytes.Contains(event, []byte(`"TEXT_MESSAGE_CONTENT"`)) {
			return nil
		}
		return s.listen(event, dialectAGUI)
	})
	return o, s, err
}

// spoken has the outputs of the models, in order.
type spoken []speaking

// speaking has the times at which a model sent its first and its last token, in microseconds of the
// machine's clock.
type speaking struct {
	First  int64 `json:"first"`
	Last   int64 `json:"last"`
	Tokens int   `json:"tokens"`
}

// listen takes the tokens of a line.
func (s *spoken) listen(line []byte, d dialect) error {
	_, text, ok := bytes.Cut(line, d.token)
	if !ok {
		return nil
	}
	text, _, _ = bytes.Cut(text, []byte{'"'})
	for len(text) > 0 {
		index, sent, rest, err := cutToken(text)
		if err != nil {
			return fmt.Errorf("%w: %w", errRun, err)
		}
		if index == 0 {
			*s = append(*s, speaking{First: sent})
		}
		last := len(*s) - 1
		if last < 0 || (*s)[last].Tokens != index {
			return fmt.Errorf("%w: token %d comes out of order", errRun, index)
		}
		(*s)[last].Last, (*s)[last].Tokens = sent, index+1
		text = rest
	}
	return nil
}

// complete checks that there are as many outputs as wanted, each with all of its tokens.
func (s spoken) complete(wanted int) error {
	if len(s) != wanted {
		return fmt.Errorf("%w: %d model calls instead of %d", errRun, len(s), wanted)
	}
	for _, one := range s {
		if one.Tokens != tokensPerRun {
			return fmt.Errorf("%w: %d tokens of %d", errRun, one.Tokens, tokensPerRun)
		}
	}
	return nil
}

// handed is the time from the last token of the first output to the first token of the second. All
// three outputs must be complete.
func (s spoken) handed() (time.Duration, error) {
	if err := s.complete(3); err != nil {
		return 0, err
	}
	return time.Duration(s[1].First-s[0].Last) * time.Microsecond, nil
}
