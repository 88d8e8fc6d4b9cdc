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

// Limits for questions.
const (
	// MaxQuestion is the maximum length of a question's message, in bytes. MaxQuestionSchema is the
	// maximum size of the schema of its answer, of its metadata, and of its state, in bytes each.
	MaxQuestion       = 4 << 10
	MaxQuestionSchema = 16 << 10
	// MaxQuestions is the maximum number of questions of a call, including repeated ones.
	MaxQuestions = 16

	// minExpiry is the minimum of [Question.ExpiresIn].
	minExpiry = time.Second
)

// The reasons that AG-UI defines for interrupts. An application's own reasons have the form
// <application>:<name>.
const (
	ReasonInput        = "input_required"
	ReasonConfirmation = "confirmation"
)

// Question is a question of a tool to the user. The thread waits for its answer as an interrupt.
type Question struct {
	// Reason is the kind of question, by which clients choose a view; empty = ReasonInput. At most
	// 64 bytes. tool_call and names with the prefix core: are reserved.
	Reason string
	// Message is the text for the user.
	Message string
	// ResponseSchema is the JSON Schema of the answer. An answer that violates it is rejected, so
	// the tool never receives one. Empty means the schema of the type parameter of [Ask], else any
	// answer.
	ResponseSchema json.RawMessage
	// Metadata is for clients; values are encoded as JSON. Keys with the prefix perdure. are
	// reserved.
	Metadata map[string]any
	// ExpiresIn is the time for an answer, at least a second; 0 = unlimited.
	ExpiresIn time.Duration
	// ExpiresAt is the time at which the question expires, instead of ExpiresIn; zero = that is used.
	ExpiresAt time.Time
	// State is opaque to Perdure. The answer carries it back, so a tool can continue instead of
	// starting again.
	State []byte
	// Wait is what the call waits for instead of the user; nil = it asks the user. [SleepUntil] and
	// [AwaitEvent] set it.
	Wait *Wait
}

// reasonRule matches valid reasons.
var reasonRule = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}(:[a-zA-Z0-9_.-]{1,64})?$`)

// complete validates a question and returns it with its defaults. The error is a *QuestionError.
func (q Question) complete() (Question, error) {
	if q.Reason == "" {
		q.Reason = ReasonInput
	}
	switch {
	case !reasonRule.MatchString(q.Reason) || len(q.Reason) > 64:
		return q, &QuestionError{Reason: "the reason must be 1 to 64 letters, digits, _, - or . with at most one colon"}
	case q.Reason == "tool_call" || strings.HasPrefix(q.Reason, "core:"):
		return q, &QuestionError{Reason: "the reason is reserved"}
	case strings.TrimSpace(q.Message) == "" || len(q.Message) > MaxQuestion:
		return q, &QuestionError{Reason: fmt.Sprintf("the message must have 1 to %d bytes", MaxQuestion)}
	case len(q.ResponseSchema) > MaxQuestionSchema:
		return q, &QuestionError{Reason: fmt.Sprintf("the schema has more than %d bytes", MaxQuestionSchema)}
	case len(q.State) > MaxQuestionSchema:
		return q, &QuestionError{Reason: fmt.Sprintf("the state has more than %d bytes", MaxQuestionSchema)}
	case q.ExpiresIn != 0 && q.ExpiresIn < minExpiry:
		return q, &QuestionError{Reason: "the expiry must be at least one second"}
	}
	if len(q.ResponseSchema) > 0 {
		if _, err := CompileSchema(q.ResponseSchema); err != nil {
			return q, &QuestionError{Reason: "the schema is not valid", Err: err}
		}
	}
	metadata, err := json.Marshal(q.Metadata)
	if err != nil {
		return q, &QuestionError{Reason: "the metadata has no JSON form", Err: err}
	}
	if len(metadata) > MaxQuestionSchema {
		return q, &QuestionError{Reason: fmt.Sprintf("the metadata has more than %d bytes", MaxQuestionSchema)}
	}
	for key := range q.Metadata {
		if strings.HasPrefix(key, "perdure.") {
			return q, &QuestionError{Reason: "metadata keys must not begin with perdure."}
		}
	}
	return q, nil
}

// Digest returns a hash of the reason, message and schema. It identifies a question of a call
// across attempts.
func (q Question) Digest() string {
	h := sha256.New()
	for _, part := range []string{q.Reason, q.Message, string(q.ResponseSchema)} {
		fmt.Fprintf(h, "%d\x00%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Answer is the outcome of a question of the same call.
type Answer struct {
	// Question is the [Question.Digest] of the question.
	Question string
	// Status is how the question ended.
	Status AnswerStatus
	// Content is the answer, JSON that matches the question's schema. It is empty unless Status is
	// Answered.
	Content json.RawMessage
	// Words is the reason of a user who declined; can be empty.
	Words string
	// State is the State of the question.
	State []byte
}

// AnswerStatus is how a question ended.
type AnswerStatus string

// The ways in which a question can end.
const (
	Answered  AnswerStatus = "answered"
	Declined  AnswerStatus = "declined"  // the user refused to answer
	Cancelled AnswerStatus = "cancelled" // the client cancelled the question
	Expired   AnswerStatus = "expired"   // nobody answered before the question expired
)

// RefusedError is the error of a question that nobody will answer.
type RefusedError struct {
	Status AnswerStatus // not Answered
	Words  string       // reason of the user who declined; can be empty
}

// Error returns a text for the model.
func (e *RefusedError) Error() string {
	switch {
	case e.Status == Expired:
		return "The question expired without an answer."
	case e.Status == Declined && e.Words != "":
		words, err := json.Marshal(e.Words)
		if err == nil {
			return "The user declined to answer the question. Reason: " + string(words)
		}
		fallthrough
	case e.Status == Declined:
		return "The user declined to answer the question."
	}
	return "The question was cancelled without an answer."
}

// QuestionError is the error of an invalid question, or of an answer that does not fit the Go type.
type QuestionError struct {
	Reason string
	Err    error // may be nil
}

// Error implements error.
func (e *QuestionError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("invalid question: %s: %v", e.Reason, e.Err)
	}
	return "invalid question: " + e.Reason
}

// Unwrap returns the cause.
func (e *QuestionError) Unwrap() error { return e.Err }

// Raised is the error of a call that waits for an answer. The caller asks the question, and repeats
// the call with all answers.
type Raised struct {
	Question
	// Index is the position of the question in the call, from 0. Answers before it remain valid,
	// later ones do not.
	Index int
}

// Error implements error.
func (e *Raised) Error() string { return "the call waits for an answer: " + e.Message }
