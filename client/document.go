package client

import (
	"encoding/json"
	"net/url"
	"strconv"
)

// Document is a decoded response of the server.
type Document[T any] struct {
	Value T
	// JSON is the response as received, with members that this version may not know. It is empty if
	// the response had no body.
	JSON json.RawMessage
}

// Page is a page of a list.
type Page[T any] struct {
	Items []T `json:"items"`
	// NextCursor is the cursor of the next page; "" on the last page.
	NextCursor string `json:"nextCursor"`
}

// Paging selects a page of a list. The zero value is the first page.
type Paging struct {
	Limit int // 1 to 500; 0 = the server's default, 100
	// Cursor is the NextCursor of the page before; "" = the first page.
	Cursor string
}

// query returns URL parameters: those of pairs (name, value, …) and those of the page, without
// empty values.
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
