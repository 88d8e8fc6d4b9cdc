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

// A server may ask people before it does what it is asked to: it answers 202 with a question. The request is made
// anew when that is answered, with all answers so far in a header, since a body is the arguments'.

const (
	// questionType is the media type of such an answer.
	questionType = "application/vnd.perdure.question+json"
	// answersHeader has the answers: a JSON list in base64.
	answersHeader = "Perdure-Answers"
	// maxAnswers bounds the header: servers commonly take 8 KiB for all of them.
	maxAnswers = 6 << 10
	// maxQuestion is what a question may have in JSON: message, schema and metadata at their bounds.
	maxQuestion = tools.MaxQuestion + 2*tools.MaxQuestionSchema + 4<<10
)

// question is what such a server asks.
type question struct {
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
	Metadata       map[string]any  `json:"metadata"`
	ExpiresIn      string          `json:"expiresIn"`
}

// replied is an answer as a server reads it.
type replied struct {
	Status  tools.AnswerStatus `json:"status"`
	Content json.RawMessage    `json:"content,omitempty"`
	Words   string             `json:"words,omitempty"`
}

func (a *answer) asks() bool {
	return a.resp.StatusCode == http.StatusAccepted && a.mediaType == questionType
}

// ask ends the call with the server's question. What is none, the model is told.
func (a *answer) ask(ctx context.Context) (tools.Result, error) {
	body, err := a.read(maxQuestion + 1)
	if err != nil {
		return tools.Result{}, err
	}
	q, err := a.question(body)
	if err == nil {
		err = tools.Raise(ctx, q)
	}
	if _, raised := errors.AsType[*tools.Raised](err); raised {
		return tools.Result{}, err
	}
	return failed(a.tool.cfg.Name+" failed: the server asks something that nobody can be asked: "+err.Error(), err), nil
}

// question reads what the server asks.
func (a *answer) question(body []byte) (tools.Question, error) {
	var q question
	if len(body) > maxQuestion {
		return tools.Question{}, fmt.Errorf("it has more than %d bytes", maxQuestion)
	}
	if err := json.Unmarshal([]byte(a.secrets.Text(string(body))), &q); err != nil {
		return tools.Question{}, errors.New("it is no JSON object with the documented members")
	}
	asked := tools.Question{Reason: q.Reason, Message: q.Message, ResponseSchema: q.ResponseSchema, Metadata: q.Metadata}
	if q.ExpiresIn == "" {
		return asked, nil
	}
	var err error
	if asked.ExpiresIn, err = time.ParseDuration(q.ExpiresIn); err != nil {
		return asked, errors.New("expiresIn is no duration")
	}
	return asked, nil
}

// setAnswers puts the answers there are into a request that is made anew. To a server the request is another one:
// so is its key.
func setAnswers(req *http.Request, key string, answers []tools.Answer) error {
	if len(answers) == 0 {
		return nil
	}
	list := make([]replied, len(answers))
	for i, a := range answers {
		list[i] = replied{Status: a.Status, Content: a.Content, Words: a.Words}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("httptool: encode answers: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(raw)
	if len(text) > maxAnswers {
		return fmt.Errorf("the answers to its questions are too long: a request has room for %d bytes", maxAnswers/4*3)
	}
	req.Header.Set(answersHeader, text)
	if key != "" {
		req.Header.Set(idempotencyHeader, headerKey(key+"/"+strconv.Itoa(len(answers))))
	}
	return nil
}
