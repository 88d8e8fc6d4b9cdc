package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// dialect has the texts that the bench searches for in a stream. Lines are searched and not
// decoded: decoding would cost the client more than writing costs some of the systems.
type dialect struct {
	token   []byte // precedes a token's text
	end     []byte // occurs in the last event
	failure []byte // occurs in the event of a failed run
}

var (
	dialectAGUI   = dialect{token: []byte(`"delta":"`), end: []byte(`"type":"RUN_FINISHED"`), failure: []byte(`"type":"RUN_ERROR"`)}
	dialectOpenAI = dialect{token: []byte(`"content":"`), end: []byte(`data: [DONE]`), failure: []byte(`"error":`)}
)

// scan reads one run's stream.
type scan struct {
	dialect dialect
	wanted  int   // number of tokens of the run
	started int64 // when the request was sent
	since   int64 // tokens sent before this time are not measured: they existed before the reader connected
	sample  *sample
	tokens  int
	ended   bool
}

// errRun means that a run was invalid.
var errRun = errors.New("bad run")

// read reads a stream to its end and checks it.
func (s *scan) read(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if len(line) > 0 {
			if err := s.line(line, micros()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return s.check()
		}
		if err != nil {
			return fmt.Errorf("%w: after %d tokens: %w", errRun, s.tokens, err)
		}
	}
}

// line checks a line of the stream that arrived at a time, in microseconds.
func (s *scan) line(line []byte, at int64) error {
	if !bytes.HasPrefix(line, []byte("data:")) {
		return nil // an id, a comment or the blank line between events
	}
	if s.ended {
		return fmt.Errorf("%w: an event follows the terminal event: %s", errRun, line)
	}
	s.sample.events++
	if !bytes.Contains(line, s.dialect.token) {
		return s.other(line, at)
	}
	_, text, _ := bytes.Cut(line, s.dialect.token)
	text, _, ok := bytes.Cut(text, []byte{'"'})
	if !ok {
		return fmt.Errorf("%w: %s", errRun, line)
	}
	for len(text) > 0 {
		index, sent, rest, err := cutToken(text)
		if err != nil {
			return fmt.Errorf("%w: %w", errRun, err)
		}
		if index != s.tokens {
			return fmt.Errorf("%w: token %d comes where %d must be", errRun, index, s.tokens)
		}
		s.token(sent, at)
		text = rest
	}
	return nil
}

// token notes a token by the times at which the model sent it and the client received it.
func (s *scan) token(sent, at int64) {
	if sent >= s.since {
		if s.tokens == 0 {
			s.sample.first = append(s.sample.first, at-s.started)
			s.sample.before = append(s.sample.before, sent-s.started)
		}
		s.sample.added = append(s.sample.added, at-sent)
	}
	s.tokens++
}

// other checks an event without a token.
func (s *scan) other(line []byte, at int64) error {
	switch {
	case bytes.Contains(line, s.dialect.failure):
		return fmt.Errorf("%w: %s", errRun, line)
	case bytes.Contains(line, s.dialect.end):
		s.ended = true
		s.sample.total = append(s.sample.total, at-s.started)
	}
	return nil
}

// check checks that the stream was complete.
func (s *scan) check() error {
	switch {
	case !s.ended:
		return fmt.Errorf("%w: no terminal event, after %d tokens", errRun, s.tokens)
	case s.tokens != s.wanted:
		return fmt.Errorf("%w: %d tokens of %d", errRun, s.tokens, s.wanted)
	}
	return nil
}
