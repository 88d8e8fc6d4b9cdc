package eventroutes

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"github.com/gin-gonic/gin"

	"github.com/perdure/perdure/api/auditing"
	"github.com/perdure/perdure/api/problem"
	"github.com/perdure/perdure/api/request"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/events"
	"github.com/perdure/perdure/internal/events/source"
)

// receiveWebhook serves POST /webhooks/{source}: it verifies the signature of the provider, and answers
// 202 when the event is durable, also if it was sent before. The challenge of a provider is answered
// with 200. A name without a webhook and a signature that is not valid have the same answer. Errors: 400
// invalid_event, 401 unauthenticated, 413 too_large, 429 rate_limited.
func (r *Routes) receiveWebhook(c *gin.Context) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), request.ResponseTimeout)
	defer cancel()
	body, err := r.ReadBody(c, events.MaxEvent)
	if err != nil {
		return err
	}
	name := request.Segment(c, "source")
	message, err := r.Sources.Receive(name, c.Request.Header, body)
	mistake, isContent := errors.AsType[*source.ContentError](err)
	if err != nil && !isContent {
		return r.refuseUnverified(c, err)
	}
	sender := auth.Principal{Tenant: message.Tenant, Subject: source.WebhookPath + name}
	auditing.By(ctx, sender)
	if err := r.Rates.Take(sender, true); err != nil {
		return err
	}
	if mistake != nil {
		return invalid("", mistake.Reason)
	}
	if message.Event == nil {
		auditing.Detail(ctx, "type", "challenge")
		return request.WriteJSON(c, http.StatusOK, gin.H{"challenge": message.Challenge})
	}
	message.Event.Via = events.ViaWebhook
	isNew, err := r.Store.Append(ctx, message.Event)
	if err != nil {
		return err
	}
	return request.WriteJSON(c, http.StatusAccepted, receipt{ID: message.Event.ID, Source: message.Event.Source, Duplicate: !isNew})
}

// refuseUnverified returns the 401 of a request that no source has signed, or the 429 if its peer has
// sent too many of them. The audit log has the reason, which would help an attacker.
func (r *Routes) refuseUnverified(c *gin.Context, err error) error {
	peer, _ := netip.ParseAddrPort(c.Request.RemoteAddr) // invalid addresses are one peer
	if tooMany := r.Rates.TakeRefusal(peer.Addr()); tooMany != nil {
		return tooMany
	}
	auditing.Detail(c.Request.Context(), "reason", err.Error())
	p := problem.New(http.StatusUnauthorized, "unauthenticated", "there is no such webhook, or the signature is not valid")
	p.Challenge = `Signature realm="perdure"`
	return p
}
