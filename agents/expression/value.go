package expression

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// This file converts between JSON, the Go values that expressions use, and the values of CEL.

// The bounds of the result of an expression: the number of its values, including nested ones, and
// the bytes of its texts.
const (
	maxValues     = 1_000_000
	maxValueBytes = 16 << 20
)

// Decode decodes JSON for expressions. Whole numbers become int64, because CEL does not add
// integers and floating-point numbers, and literals in definitions are integers. Other numbers
// become float64. Invalid JSON becomes nil.
func Decode(raw json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	return Normal(v)
}

// Normal converts the numbers in a JSON value to the types of Decode. It changes maps and slices in
// place.
func Normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
		f, _ := v.Float64() // ±Inf if it is too large
		return f
	case int:
		return int64(v)
	case map[string]any:
		for key, member := range v {
			v[key] = Normal(member)
		}
	case []any:
		for i, entry := range v {
			v[i] = Normal(entry)
		}
	}
	return v
}

// plain converts a CEL value to a JSON value. It fails for values without a JSON form, such as NaN.
func plain(v ref.Val) (any, error) {
	return plainIn(v, new(size))
}

// plainIn is plain with the size of the values before this one. The members of a value may share
// memory, so it can be far larger than its memory.
func plainIn(v ref.Val, before *size) (any, error) {
	if before.values++; before.values > maxValues {
		return nil, errors.New("the value has too many members")
	}
	if before.addText(v); before.bytes > maxValueBytes {
		return nil, errors.New("the value is too long")
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, errors.New("the value is not a finite number")
	case types.String:
		return string(v), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.Duration.String(), nil
	case traits.Mapper:
		return plainObject(v, before)
	case traits.Lister:
		return plainList(v, before)
	}
	return nil, fmt.Errorf("a %s has no JSON form", v.Type().TypeName())
}

// plainList converts a list.
func plainList(v traits.Lister, before *size) (any, error) {
	list := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		entry, err := plainIn(it.Next(), before)
		if err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, nil
}

// plainObject converts a map, whose keys must be strings.
func plainObject(v traits.Mapper, before *size) (any, error) {
	object := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.Value().(string)
		if !ok {
			return nil, errors.New("a key is not a string")
		}
		before.bytes += len(name)
		member, err := plainIn(v.Get(key), before)
		if err != nil {
			return nil, err
		}
		object[name] = member
	}
	return object, nil
}

// describe names the type of a value for errors, without its content.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}
