// Package exact decodes JSON without rounding numbers.
package exact

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object. Its numbers are decoded as json.Number, so IDs above 2^53 keep all digits.
type Object map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (o *Object) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(o))
}
