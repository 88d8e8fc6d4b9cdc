package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Head is the last entry of a chain, or of a part of it. The zero value is that of an empty chain.
type Head struct {
	Number uint64 `json:"number"`
	// Digest is in hex.
	Digest string `json:"digest"`
}

// Append appends an entry to a chain whose last entry is h: it sets Number and Previous, and returns
// the entry's bytes and the new head.
func (h Head) Append(e *Entry) (raw []byte, next Head, err error) {
	e.Number, e.Previous = h.Number+1, h.Digest
	raw, err = json.Marshal(e)
	if err != nil {
		return nil, h, fmt.Errorf("audit: encode entry: %w", err)
	}
	return raw, HeadOf(e.Number, raw), nil
}

// HeadOf returns the head of a chain whose last entry has a number and these bytes.
func HeadOf(number uint64, raw []byte) Head {
	sum := sha256.Sum256(raw)
	return Head{Number: number, Digest: hex.EncodeToString(sum[:])}
}

// Decode decodes the stored bytes of an entry.
func Decode(raw []byte) (*Entry, error) {
	e := new(Entry)
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fmt.Errorf("audit: decode an entry: %w", err)
	}
	return e, nil
}

// BrokenError tells where a chain is broken.
type BrokenError struct {
	// Number is the number of the entry that does not continue the chain, or that is missing.
	Number uint64
	// Reason is a sentence without its subject, such as "has number 7".
	Reason string
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("audit: the chain is broken at entry %d: the entry %s", e.Number, e.Reason)
}

// Verifier checks the entries of a chain, one after the other. The first one may have any number:
// earlier ones may have expired. The zero value is ready for use.
type Verifier struct {
	head    Head
	started bool
}

// Verify checks the next entry, given as its stored bytes. Errors: *BrokenError.
func (v *Verifier) Verify(raw []byte) error {
	var e Entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return &BrokenError{Number: v.head.Number + 1, Reason: "is not valid JSON: " + err.Error()}
	}
	switch {
	case !v.started && e.Number == 1 && e.Previous != "":
		return &BrokenError{Number: 1, Reason: "is the first one, but names an entry before it"}
	case !v.started:
	case e.Number != v.head.Number+1:
		return &BrokenError{Number: v.head.Number + 1, Reason: fmt.Sprintf("has number %d", e.Number)}
	case e.Previous != v.head.Digest:
		return &BrokenError{Number: e.Number, Reason: fmt.Sprintf("does not have the digest of entry %d", v.head.Number)}
	}
	v.started, v.head = true, HeadOf(e.Number, raw)
	return nil
}

// Head returns the last entry that Verify has accepted.
func (v *Verifier) Head() Head { return v.head }
