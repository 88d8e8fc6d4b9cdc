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

// A server may ask people before it acts: it answers 202 with a question. The request is repeated
// when the question is answered, with all answers so far in a header, because the body has the
// arguments.

const (
	// questionType is the media type of such an answer.
	questionType = "application/vnd.perdure.question+json"
	// answersHeader is the header with the answers: a JSON list in base64.
	answersHeader = "Perdure-Answers"
	// maxAnswers bounds the header: servers commonly accept 8 KiB for all headers.
	maxAnswers = 6 << 10
	// maxQuestion bounds a question in JSON: message, schema and metadata at their bounds.
	maxQuestion = tools.MaxQuestion + 2*tools.MaxQuestionSchema + 4<<10
)

// question is the question of a server.
type question struct {
	Reason         string          `json:"reason"`
	Message        string          `json:"message"`
	ResponseSchema json.RawMessage `json:"responseSchema"`
	Metadata       map[string]any  `json:"metadata"`
	ExpiresIn      string          `json:"expiresIn"`
}

// replied is an answer in the form that the server receives.
type replied struct {
	Status  tools.AnswerStatus `json:"status"`
	Content json.RawMessage    `json:"content,omitempty"`
	Words   string             `json:"words,omitempty"`
}

func (a *answer) asks() bool {
	return a.resp.StatusCode == http.StatusAccepted && a.mediaType == questionType
}

// ask ends the call with the server's question. An invalid question is a failure for the model.
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

// question decodes the question of a server.
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

// setAnswers adds the answers to a repeated request. For a server it is another request, so its key
// differs.
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
