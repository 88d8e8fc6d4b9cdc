package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/perdure/perdure/internal/durations"
)

// Encode returns a valid definition as canonical JSON: one text for one meaning. Limits are written
// with their defaults; other members with their default are omitted. Revisions are digests of this
// text, so the form of an existing definition must never change. A new member must be omitted while
// it has its default.
func Encode(d *Definition) ([]byte, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	return canonical(d), nil
}

// Decode parses the output of Encode and validates it. An unknown member is an error: a newer
// version wrote it, and an agent must not run without, for example, its approvals.
func Decode(data []byte) (*Definition, error) {
	d := &Definition{}
	if err := decodeStrictly(data, d); err != nil {
		return nil, fmt.Errorf("agent definition: %w", err)
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d.Limits = d.Limits.orDefault()
	return d, nil
}

// Revision returns the revision of a valid definition: the SHA-256 of its canonical JSON, as 64
// hexadecimal digits. Two definitions have the same revision if and only if they mean the same.
func (d *Definition) Revision() string {
	sum := sha256.Sum256(canonical(d))
	return hex.EncodeToString(sum[:])
}

// canonical is Encode without validation.
func canonical(d *Definition) []byte {
	complete := *d
	complete.Limits = d.Limits.orDefault()
	complete.withoutDefaults()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(complete) // strings and numbers can be encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// limitsJSON is the JSON of Limits: the duration is text, as in files. Pointers distinguish a limit
// of zero, which is an error, from one that is not set.
type limitsJSON struct {
	Turns         *int    `json:"turns,omitempty"`
	Tokens        *int64  `json:"tokens,omitempty"`
	Duration      *string `json:"duration,omitempty"`
	ParallelTools *int    `json:"parallelTools,omitempty"`
	Wait          *string `json:"wait,omitempty"`
	Cost          *Money  `json:"cost,omitempty"`

	Soft *SoftLimits `json:"soft,omitempty"`
}

// MarshalJSON writes the duration as text, such as 2h0m0s, and omits limits that are not set.
func (l Limits) MarshalJSON() ([]byte, error) {
	out := limitsJSON{Turns: unlessZero(l.Turns), Tokens: unlessZero(l.Tokens), ParallelTools: unlessZero(l.ParallelTools), Cost: unlessZero(l.Cost), Soft: l.Soft}
	if l.Duration != 0 {
		out.Duration = new(l.Duration.String())
	}
	if l.Wait != 0 {
		out.Wait = new(l.Wait.String())
	}
	return json.Marshal(out)
}

// UnmarshalJSON parses the output of MarshalJSON. It refuses unknown members and limits of zero, as
// files do.
func (l *Limits) UnmarshalJSON(data []byte) error {
	var in limitsJSON
	if err := decodeStrictly(data, &in); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	var out Limits
	err := errors.Join(
		setDefault(&out.Turns, in.Turns, "turns"),
		setDefault(&out.Tokens, in.Tokens, "tokens"),
		takeDuration(&out.Duration, in.Duration, "duration"),
		setDefault(&out.ParallelTools, in.ParallelTools, "parallelTools"),
		takeDuration(&out.Wait, in.Wait, "wait"),
		setDefault(&out.Cost, in.Cost, "cost"),
	)
	if err != nil {
		return err
	}
	out.Soft = in.Soft
	*l = out
	return nil
}

// unlessZero returns a pointer to n; nil for 0.
func unlessZero[N int | int64 | Money](n N) *N {
	if n == 0 {
		return nil
	}
	return &n
}

// setDefault stores a given limit in *into. It keeps *into if given is nil, and refuses 0 and less.
func setDefault[N int | int64 | time.Duration | Money](into, given *N, key string) error {
	if given == nil {
		return nil
	}
	if *given <= 0 {
		return fmt.Errorf("limits.%s must be greater than zero", key)
	}
	*into = *given
	return nil
}

// takeDuration is setDefault for a duration as text.
func takeDuration(into *time.Duration, given *string, key string) error {
	if given == nil {
		return nil
	}
	d, err := durations.Parse(*given)
	if err != nil {
		return fmt.Errorf("limits.%s: %w", key, err)
	}
	return setDefault(into, &d, key)
}

// decodeStrictly decodes exactly one JSON value, and refuses unknown members. A type with its own
// UnmarshalJSON must call decodeStrictly again, because the decoder does not pass
// DisallowUnknownFields on.
func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the JSON value")
	}
	return nil
}
