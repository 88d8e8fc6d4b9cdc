package httptool

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/perdure/perdure/tools"
)

// A server can ask the user before it acts: it responds with status 202 and a question. When the
// question is answered, the request is repeated with all answers so far in a header, since the body
// contains the arguments.
const (
	// questionType is the media type of a response with a question.
	questionType = "application/vnd.perdure.question+json"
	// answersHeader is the header with the answers: a base64-encoded JSON array.
	answersHeader = "Perdure-Answers"
	// maxAnswers is the maximum length of that header, in bytes. Servers commonly limit all headers
	// together to 8 KiB.
	maxAnswers = 6 << 10
	// maxQuestion is the maximum size of a question, in bytes of JSON: a message, schema and
	// metadata of maximum size, and their names.
	maxQuestion = tools.MaxQuestion + 2*tools.MaxQuestionSchema + 4<<10
)

// question is a question in the form in which the server sends it.
type question struct {
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
	Metadata       map[string]any  `json:"metadata"`
	ExpiresIn      string          `json:"expiresIn"` // a Go duration, such as 24h; "" = unlimited
}

// sentAnswer is an answer in the form in which the server receives it.
type sentAnswer struct {
	Status  tools.AnswerStatus `json:"status"`
	Content json.RawMessage    `json:"content,omitempty"`
	Words   string             `json:"words,omitempty"`
}

// isQuestion reports whether the response is a question.
func (a *answer) isQuestion() bool {
	return a.resp.StatusCode == http.StatusAccepted && a.mediaType == questionType
}

// raiseQuestion returns the *tools.Raised error that ends the call with the server's question. If
// the question is invalid, or the caller does not support questions, it returns a failure for the
// model.
func (a *answer) raiseQuestion(ctx context.Context) (tools.Result, error) {
	body, err := a.read(maxQuestion + 1)
	if err != nil {
		return tools.Result{}, err
	}
	q, err := a.decodeQuestion(body)
	if err == nil {
		err = tools.Raise(ctx, q)
	}
	if _, isQuestion := errors.AsType[*tools.Raised](err); isQuestion {
		return tools.Result{}, err
	}
	return failed(a.tool.cfg.Name+" failed: the server's question cannot be asked: "+err.Error(), err), nil
}

// decodeQuestion decodes the server's question.
func (a *answer) decodeQuestion(body []byte) (tools.Question, error) {
	var q question
	if len(body) > maxQuestion {
		return tools.Question{}, fmt.Errorf("the question has more than %d bytes", maxQuestion)
	}
	if err := json.Unmarshal([]byte(a.secrets.Text(string(body))), &q); err != nil {
		return tools.Question{}, errors.New("the question is not a JSON object with the documented members")
	}
	asked := tools.Question{Reason: q.Reason, Message: q.Message, ResponseSchema: q.ResponseSchema, Metadata: q.Metadata}
	if q.ExpiresIn == "" {
		return asked, nil
	}
	var err error
	if asked.ExpiresIn, err = time.ParseDuration(q.ExpiresIn); err != nil {
		return asked, errors.New("expiresIn is not a duration")
	}
	return asked, nil
}

// setAnswers adds the answers to a repeated request. The request then differs from the first one,
// so its idempotency key differs as well.
func setAnswers(req *http.Request, key string, answers []tools.Answer) error {
	if len(answers) == 0 {
		return nil
	}
	list := make([]sentAnswer, len(answers))
	for i, a := range answers {
		list[i] = sentAnswer{Status: a.Status, Content: a.Content, Words: a.Words}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("httptool: encode answers: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(raw)
	if len(text) > maxAnswers {
		return fmt.Errorf("the answers to the questions are too long: a request has room for %d bytes", maxAnswers/4*3)
	}
	req.Header.Set(answersHeader, text)
	if key != "" {
		req.Header.Set(idempotencyHeader, headerKey(key+"/"+strconv.Itoa(len(answers))))
	}
	return nil
}
