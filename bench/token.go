package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// A token's text is "<index>.<time sent>" and a blank, with the time in microseconds of the
// machine's clock. A large token has a point and padding before the blank. No character of it is
// escaped in JSON.

func appendToken(buf []byte, index int, sent int64, padding int) []byte {
	buf = strconv.AppendInt(buf, int64(index), 10)
	buf = append(buf, '.')
	buf = strconv.AppendInt(buf, sent, 10)
	if padding > 0 {
		buf = append(buf, '.')
		buf = append(buf, bytes.Repeat([]byte{'x'}, padding)...)
	}
	return append(buf, ' ')
}

var errToken = errors.New("not a token")

// cutToken takes the first token off a text.
func cutToken(text []byte) (index int, sent int64, rest []byte, err error) {
	token, rest, ok := bytes.Cut(text, []byte{' '})
	dot := bytes.IndexByte(token, '.')
	if !ok || dot < 0 {
		return 0, 0, nil, fmt.Errorf("%w: %q", errToken, text)
	}
	n, err1 := number(token[:dot])
	digits, _, _ := bytes.Cut(token[dot+1:], []byte{'.'})
	sent, err2 := number(digits)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, nil, err
	}
	return int(n), sent, rest, nil
}

// number is strconv.ParseInt for bytes, without the copy.
func number(digits []byte) (int64, error) {
	if len(digits) == 0 || len(digits) > 18 {
		return 0, fmt.Errorf("%w: %q", errToken, digits)
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%w: %q", errToken, digits)
		}
		n = 10*n + int64(c-'0')
	}
	return n, nil
}
