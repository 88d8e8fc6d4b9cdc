package runs

import (
	"bytes"
	"encoding/json"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"

	"go.temporal.io/sdk/converter"
)

// MaxPayload bounds each value in a history, in bytes.
const MaxPayload = 16 << 10

// PayloadError refuses a value that is too large: content belongs in the log.
type PayloadError struct {
	Value string // its type
	Size  int
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("runs: %s takes %d bytes, more than the limit of %d for the history: store content in the log", e.Value, e.Size, MaxPayload)
}

// DataConverter returns the data converter of clients and workers: JSON, bounded by MaxPayload.
func DataConverter() converter.DataConverter {
	return bounded{converter.GetDefaultDataConverter()}
}

// bounded is a data converter that refuses large payloads.
type bounded struct{ converter.DataConverter }

func (b bounded) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := b.DataConverter.ToPayload(value)
	if err == nil && string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingJSON {
		p.Data, err = Encode(value)
	}
	if err == nil && len(p.GetData()) > MaxPayload {
		return nil, &PayloadError{Value: fmt.Sprintf("%T", value), Size: len(p.GetData())}
	}
	return p, err
}

func (b bounded) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	var all commonpb.Payloads
	for i, v := range values {
		p, err := b.ToPayload(v)
		if err != nil {
			return nil, fmt.Errorf("values[%d]: %w", i, err)
		}
		all.Payloads = append(all.Payloads, p)
	}
	return &all, nil
}

// Copy returns a deep copy of an input: what an activity would receive. A local activity receives its
// input itself, which the workflow may change while the activity runs. An input that is not made of
// JSON types, which no activity can have, is returned itself.
func Copy[T any](input T) T {
	body, err := Encode(input) //workflowcheck:ignore the same value gives the same text
	if err != nil {
		return input
	}
	var c T
	err = json.Unmarshal(body, &c) //workflowcheck:ignore the same text gives the same value
	if err != nil {
		return input
	}
	return c
}

// Fits reports whether a value may enter a history.
func Fits(value any) bool {
	body, err := Encode(value) //workflowcheck:ignore the same value gives the same text
	return err == nil && len(body) <= MaxPayload
}

// Encode encodes JSON without HTML escapes: an ID may be full of "<", which would take six times
// its length.
func Encode(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("runs: encode %T: %w", value, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
