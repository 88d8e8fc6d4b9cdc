package openai

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/perdure/perdure/llm/internal/wire"
)

// object is a JSON object, or missing if the member has another type. Members of T with a wrong
// type keep their zero value.
type object[T any] struct {
	value     T
	isPresent bool
}

// UnmarshalJSON implements [json.Unmarshaler]. It never fails: data is valid JSON, so the only
// possible error is a wrong type.
func (o *object[T]) UnmarshalJSON(data []byte) error {
	*o = object[T]{isPresent: data[0] == '{'}
	if o.isPresent {
		_ = json.Unmarshal(data, &o.value)
	}
	return nil
}

// list is an array of JSON objects, or nil if the member or an element has another type. Members of
// T with a wrong type keep their zero value, and so does an element of null.
type list[T any] []T

// UnmarshalJSON implements [json.Unmarshaler]. It never fails, like that of object.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	*l = nil
	if json.Unmarshal(data, (*[]T)(l)) != nil && !isListOfObjects(data) {
		*l = nil
	}
	return nil
}

// isListOfObjects reports whether data is an array whose elements are objects or null.
func isListOfObjects(data []byte) bool {
	var elements []json.RawMessage
	if json.Unmarshal(data, &elements) != nil {
		return false
	}
	for _, element := range elements {
		if wire.IsPresent(element) && element[0] != '{' {
			return false
		}
	}
	return true
}

// integer is an integer, or missing. Servers also send integers as strings ("1") and with a
// fraction (1.0), which is cut off.
type integer struct {
	value     int64
	isPresent bool
}

// UnmarshalJSON implements [json.Unmarshaler]. It never fails. Values that int64 cannot represent
// become the nearest one, true becomes 1 and false 0.
func (i *integer) UnmarshalJSON(data []byte) error {
	*i = integer{}
	number := string(data)
	switch number {
	case "true":
		number = "1"
	case "false":
		number = "0"
	}
	if text, isString := wire.Unquote(number); isString {
		number = text
	}
	if value, err := strconv.ParseInt(number, 10, 64); err == nil {
		*i = integer{value, true}
	} else if value, err := strconv.ParseFloat(number, 64); err == nil {
		*i = integer{toInt64(value), true}
	}
	return nil
}

// toInt64 returns the integer part of a number, limited to the range of int64.
func toInt64(number float64) int64 {
	switch {
	case number >= math.MaxInt64:
		return math.MaxInt64
	case number < math.MinInt64:
		return math.MinInt64
	}
	return int64(number)
}

// count returns the integer as a number of tokens; nil if it is missing or negative.
func (i integer) count() *int64 {
	if !i.isPresent || i.value < 0 {
		return nil
	}
	return &i.value
}
