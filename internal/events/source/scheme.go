package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// scheme is how a kind of providers signs requests and names events. Its functions are safe for
// concurrent use.
type scheme struct {
	// checkKey returns what is wrong with a key, as a predicate without its value.
	checkKey func(key string) error
	// verify checks the signature of a request, and its time if it is signed.
	verify func(key string, header http.Header, body []byte, now time.Time) error
	// identify returns the ID and the type of the event; "" = the provider has given none.
	identify func(request) (id, kind string)
	// challenge returns the text that the provider wants to have back; "" = the request is an event.
	// nil = the provider sends no challenges.
	challenge func(request) string
}

// schemes are the schemes by their name in the configuration.
var schemes = map[string]scheme{
	"standard": {checkKey: checkStandardKey, verify: verifyStandard, identify: identifyStandard},
	"github":   {checkKey: checkKey, verify: verifyGitHub, identify: identifyGitHub},
	"stripe":   {checkKey: checkKey, verify: verifyStripe, identify: identifyStripe},
	"slack":    {checkKey: checkKey, verify: verifySlack, identify: identifySlack, challenge: slackChallenge},
}

// tolerance is how far the time of a signature may be from the present: it bounds how long a captured
// request can be repeated with another ID.
const tolerance = 5 * time.Minute

// minKey bounds a key, and minStandardKey and maxStandardKey that of Standard Webhooks, in bytes.
const (
	minKey         = 16
	minStandardKey = 24
	maxStandardKey = 64
)

// Reasons why a signature is not valid.
var (
	errHeader    = errors.New("a header of the signature is missing or malformed")
	errTime      = errors.New("the time of the signature is more than 5 minutes from the present")
	errSignature = errors.New("no signature matches the body")
)

func checkKey(key string) error {
	if len(key) < minKey {
		return fmt.Errorf("must have at least %d bytes", minKey)
	}
	return nil
}

func checkStandardKey(key string) error {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	if err != nil || len(raw) < minStandardKey || len(raw) > maxStandardKey {
		return fmt.Errorf("must be base64 of %d to %d bytes", minStandardKey, maxStandardKey)
	}
	return nil
}

// verifyStandard verifies a signature of Standard Webhooks.
func verifyStandard(key string, header http.Header, body []byte, now time.Time) error {
	verifier, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return err
	}
	if err := checkTime(header.Get(standardwebhooks.HeaderWebhookTimestamp), now); err != nil {
		return err
	}
	switch err := verifier.VerifyIgnoringTimestamp(body, header); {
	case errors.Is(err, standardwebhooks.ErrNoMatchingSignature):
		return errSignature
	case err != nil:
		return errHeader
	}
	return nil
}

func identifyStandard(r request) (id, kind string) {
	return r.header.Get(standardwebhooks.HeaderWebhookID), r.body.text("type")
}

// verifyGitHub verifies the header X-Hub-Signature-256. GitHub signs the body only, and no time.
func verifyGitHub(key string, header http.Header, body []byte, _ time.Time) error {
	signature, ok := strings.CutPrefix(header.Get("X-Hub-Signature-256"), "sha256=")
	if !ok {
		return errHeader
	}
	return verifyHex(key, []string{signature}, string(body))
}

func identifyGitHub(r request) (id, kind string) {
	kind = r.header.Get("X-GitHub-Event")
	if action := r.body.text("action"); kind != "" && action != "" {
		kind += "." + action
	}
	return r.header.Get("X-GitHub-Delivery"), kind
}

// verifyStripe verifies the header Stripe-Signature: t=<seconds>,v1=<signature>, with one signature for
// each key that is active.
func verifyStripe(key string, header http.Header, body []byte, now time.Time) error {
	var at string
	var signatures []string
	for part := range strings.SplitSeq(header.Get("Stripe-Signature"), ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			at = value
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if len(signatures) == 0 {
		return errHeader
	}
	if err := checkTime(at, now); err != nil {
		return err
	}
	return verifyHex(key, signatures, at+"."+string(body))
}

func identifyStripe(r request) (id, kind string) { return r.body.text("id"), r.body.text("type") }

// verifySlack verifies the header X-Slack-Signature: v0=<signature>.
func verifySlack(key string, header http.Header, body []byte, now time.Time) error {
	signature, ok := strings.CutPrefix(header.Get("X-Slack-Signature"), "v0=")
	if !ok {
		return errHeader
	}
	at := header.Get("X-Slack-Request-Timestamp")
	if err := checkTime(at, now); err != nil {
		return err
	}
	return verifyHex(key, []string{signature}, "v0:"+at+":"+string(body))
}

func identifySlack(r request) (id, kind string) {
	if kind = membersOf(r.body["event"]).text("type"); kind == "" {
		kind = r.body.text("type")
	}
	return r.body.text("event_id"), kind
}

// slackChallenge returns the challenge with which Slack checks that an address accepts its events.
func slackChallenge(r request) string {
	if r.body.text("type") != "url_verification" {
		return ""
	}
	return r.body.text("challenge")
}

// verifyHex checks that one of several signatures is the HMAC-SHA256 of a text, in hex.
func verifyHex(key string, signatures []string, signed string) error {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(signed))
	want := mac.Sum(nil)
	for _, signature := range signatures {
		if got, err := hex.DecodeString(signature); err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errSignature
}

// checkTime checks that a time in seconds since 1970 is within the tolerance.
func checkTime(seconds string, now time.Time) error {
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return errHeader
	}
	if age := now.Sub(time.Unix(n, 0)); age > tolerance || age < -tolerance {
		return errTime
	}
	return nil
}

// request is a verified request.
type request struct {
	header http.Header
	body   members
}

// members are the members of a JSON object, by their exact names.
type members map[string]json.RawMessage

// membersOf returns the members of an object; nil = it is none.
func membersOf(data []byte) (m members) {
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	return m
}

// text returns the text of a member; "" = it is missing, or another kind of value.
func (m members) text(name string) (text string) {
	if json.Unmarshal(m[name], &text) != nil {
		return ""
	}
	return text
}
