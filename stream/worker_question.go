package stream

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Workers ask each other questions by core NATS messages, for instance which one of them makes a
// model call. Questions and answers are best effort, on subjects that every worker receives with its
// commands: so an answer needs no permission for inboxes of other workers.

// askSubject returns the subject of the questions of workers.
func (l *Log) askSubject() string { return l.prefix + "-command.ask" }

// answerSubject returns the subject of the answers to a question with a name.
func (l *Log) answerSubject(name string) string { return l.prefix + "-command.answer." + name }

// askTimeout bounds how long Ask waits for an answer. All workers get the question, and most have
// nothing to answer.
const askTimeout = 200 * time.Millisecond

// Ask asks all workers a question, and returns the first answer; nil = none has answered within
// askTimeout, or ctx has ended.
func (c *Commands) Ask(ctx context.Context, question []byte) []byte {
	name := strings.ToLower(rand.Text())
	answers := make(chan []byte, 1)
	defer c.add(c.log.answerSubject(name), func(m *nats.Msg) {
		select {
		case answers <- m.Data:
		default: // another worker has answered
		}
	})()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := c.log.nc.PublishMsg(&nats.Msg{Subject: c.log.askSubject(), Header: nats.Header{header: {name}}, Data: question}); err != nil {
		return nil
	}
	select {
	case answer := <-answers:
		return answer
	case <-ctx.Done():
		return nil
	}
}

// Answer has find answer the questions of workers, also those of this one, until the returned
// function is called. find must not block; nil = it has no answer.
func (c *Commands) Answer(find func(question []byte) []byte) (stop func()) {
	return c.add(c.log.askSubject(), func(m *nats.Msg) {
		if answer := find(m.Data); answer != nil {
			_ = c.log.nc.Publish(c.log.answerSubject(m.Header.Get(header)), answer)
		}
	})
}
