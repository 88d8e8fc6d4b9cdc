// Package eventroutes serves events of other systems (POST /v1/events, in the forms of CloudEvents;
// POST /webhooks/{source}, signed by a provider), and the runs that wait for a time or an event (GET /v1/waits). Package events has the events.
package eventroutes
