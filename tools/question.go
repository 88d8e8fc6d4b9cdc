package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Bounds of a question.
const (
	// MaxQuestion bounds the message of a question in bytes, MaxQuestionSchema the schema of its answer,
	// its metadata and its state, each.
	MaxQuestion       = 4 << 10
	MaxQuestionSchema = 16 << 10
	// MaxQuestions is how many questions one call may raise, with those that it raises anew.
	MaxQuestions = 16

	minExpiry = time.Second
)

// Reasons of questions that AG-UI knows. An application's own are <application>:<name>.
const (
	ReasonInput        = "input_required"
	ReasonConfirmation = "confirmation"
)

// Question is what a tool asks people in the middle of a call.
type Question struct {
	// Reason says what kind of question it is, for clients to choose a view by; empty = ReasonInput. At most 64
	// bytes. tool_call is taken, and so is what begins with core:.
	Reason string
	// Message is for people.
	Message string
	// ResponseSchema is the JSON Schema of the answer. Others are refused before the tool hears of them. Empty
	// is what [Ask] makes of its type, and elsewhere anything.
	ResponseSchema json.RawMessage
	// Metadata is for clients: values are encoded as JSON. Keys that begin with perdure. are taken.
	Metadata map[string]any
	// ExpiresIn is how long there is to answer, at least a second; 0 = for ever.
	ExpiresIn time.Duration
	// State is nobody's but the tool's. It comes back with the answer, so that a tool need not begin anew.
	State []byte
}

var reasonRule = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}(:[a-zA-Z0-9_.-]{1,64})?$`)

// complete checks a question and fills its defaults in. The error is a *QuestionError.
func (q Question) complete() (Question, error) {
	if q.Reason == "" {
		q.Reason = ReasonInput
	}
	switch {
	case !reasonRule.MatchString(q.Reason) || len(q.Reason) > 64:
		return q, &QuestionError{Reason: "its reason must be 1 to 64 letters, digits, _, - or . with at most one colon"}
	case q.Reason == "tool_call" || strings.HasPrefix(q.Reason, "core:"):
		return q, &QuestionError{Reason: "its reason is taken"}
	case strings.TrimSpace(q.Message) == "" || len(q.Message) > MaxQuestion:
		return q, &QuestionError{Reason: fmt.Sprintf("its message must have 1 to %d bytes", MaxQuestion)}
	case len(q.ResponseSchema) > MaxQuestionSchema:
		return q, &QuestionError{Reason: fmt.Sprintf("its schema has more than %d bytes", MaxQuestionSchema)}
	case len(q.State) > MaxQuestionSchema:
		return q, &QuestionError{Reason: fmt.Sprintf("its state has more than %d bytes", MaxQuestionSchema)}
	case q.ExpiresIn != 0 && q.ExpiresIn < minExpiry:
		return q, &QuestionError{Reason: "it must be open for a second at least"}
	}
	if len(q.ResponseSchema) > 0 {
		if _, err := CompileSchema(q.ResponseSchema); err != nil {
			return q, &QuestionError{Reason: "its schema is none", Err: err}
		}
	}
	metadata, err := json.Marshal(q.Metadata)
	if err != nil {
		return q, &QuestionError{Reason: "its metadata is no JSON", Err: err}
	}
	if len(metadata) > MaxQuestionSchema {
		return q, &QuestionError{Reason: fmt.Sprintf("its metadata has more than %d bytes", MaxQuestionSchema)}
	}
	for key := range q.Metadata {
		if strings.HasPrefix(key, "perdure.") {
			return q, &QuestionError{Reason: "keys of metadata that begin with perdure. are taken"}
		}
	}
	return q, nil
}

// Digest tells questions apart by what people are asked: reason, message and schema.
func (q Question) Digest() string {
	h := sha256.New()
	for _, part := range []string{q.Reason, q.Message, string(q.ResponseSchema)} {
		fmt.Fprintf(h, "%d\x00%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Answer is what came of a question of the same call.
type Answer struct {
	// Question is the digest of what was asked.
	Question string
	Status   AnswerStatus
	// Content is the answer: JSON that fits the question's schema. Only of an Answered one.
	Content json.RawMessage
	// Words are why a person refused, if they said so.
	Words string
	// State is the question's.
	State []byte
}

// AnswerStatus says what came of a question.
type AnswerStatus string

// What may come of it.
const (
	Answered  AnswerStatus = "answered"
	Declined  AnswerStatus = "declined"  // a person said that they will not answer
	Cancelled AnswerStatus = "cancelled" // the client gave the question up
	Expired   AnswerStatus = "expired"   // nobody answered in time
)

// RefusedError says that a question has no answer and will get none.
type RefusedError struct {
	Status AnswerStatus // not Answered
	Words  string       // of who declined; may be empty
}

// Error returns what the model is told by a tool that returns it.
func (e *RefusedError) Error() string {
	switch {
	case e.Status == Expired:
		return "Nobody answered the question in time."
	case e.Status == Declined && e.Words != "":
		words, err := json.Marshal(e.Words)
		if err == nil {
			return "The person who was asked declined to answer. They said: " + string(words)
		}
		fallthrough
	case e.Status == Declined:
		return "The person who was asked declined to answer."
	}
	return "Whoever was asked gave no answer."
}

// QuestionError says why a question cannot be asked, or its answer not be read.
type QuestionError struct {
	Reason string
	Err    error // may be nil
}

func (e *QuestionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("bad question: %s: %v", e.Reason, e.Err)
	}
	return "bad question: " + e.Reason
}

func (e *QuestionError) Unwrap() error { return e.Err }

// Raised is the error with which a call ends that waits for an answer: whoever makes calls asks the question, and
// makes the call anew with all answers there are.
type Raised struct {
	Question
	// Index is its place among the questions of the call, from 0: answers before it count, those behind it do
	// not any more.
	Index int
}

func (e *Raised) Error() string { return "the call waits for an answer: " + e.Message }
