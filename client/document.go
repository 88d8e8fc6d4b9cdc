package client

import (
	"encoding/json"
	"net/url"
	"strconv"
)

// Document is something that the server has answered.
type Document[T any] struct {
	Value T
	// JSON is the answer as it came, with members that this version may not know; empty if it had no body.
	JSON json.RawMessage
}

// Page is a part of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// NextCursor is where the next page begins; "" = there is none.
	NextCursor string `json:"nextCursor"`
}

// Paging says which part of a list is asked for. The zero value is the first page.
type Paging struct {
	Limit  int    // 1 to 500; 0 = as the server likes, 100
	Cursor string // the NextCursor of the page before
}

// query makes parameters of pairs of name and value, without those that are empty.
func (p Paging) query(pairs ...string) url.Values {
	q := url.Values{}
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	pairs = append(pairs, "cursor", p.Cursor)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
