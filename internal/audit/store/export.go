package store

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/global"

	"github.com/perdure/perdure/internal/audit"
)

// scope is the instrumentation scope of the log records.
const scope = "github.com/perdure/perdure/audit"

// exporter returns a function that emits an entry as an OpenTelemetry log record. Without a
// collector in the configuration of the process, it does nothing.
func exporter() func(context.Context, Chain, *audit.Entry) {
	logger := global.Logger(scope)
	return func(ctx context.Context, c Chain, e *audit.Entry) {
		if !logger.Enabled(ctx, log.EnabledParameters{EventName: eventName}) {
			return
		}
		var r log.Record
		r.SetEventName(eventName)
		r.SetTimestamp(e.Time)
		r.SetBody(log.StringValue(string(e.Action) + " " + string(e.Outcome)))
		r.SetSeverity(log.SeverityInfo)
		if e.Outcome != audit.Accepted {
			r.SetSeverity(log.SeverityWarn)
		}
		r.AddAttributes(attributes(c, e)...)
		logger.Emit(ctx, r)
	}
}

// eventName is the event name of all log records of the audit log.
const eventName = "perdure.audit"

// attributes returns the members of an entry as attributes of its log record. docs/guides/audit.md
// lists them.
func attributes(c Chain, e *audit.Entry) []log.KeyValue {
	list := []log.KeyValue{
		log.Int64("perdure.audit.number", int64(e.Number)), //nolint:gosec // counts from 1
		log.String("perdure.audit.action", string(e.Action)),
		log.String("perdure.audit.outcome", string(e.Outcome)),
	}
	add := func(key, value string) {
		if value != "" {
			list = append(list, log.String(key, value))
		}
	}
	add("perdure.audit.chain", c.token)
	add("perdure.audit.previous", e.Previous)
	if e.Status != 0 {
		list = append(list, log.Int("http.response.status_code", e.Status))
	}
	add("perdure.audit.code", e.Code)
	add("perdure.audit.rule", e.Rule)
	if e.Actor != nil {
		add("perdure.tenant", e.Actor.Tenant)
		add("user.id", e.Actor.Subject)
		roles := make([]log.Value, 0, len(e.Actor.Roles))
		for _, role := range e.Actor.Roles {
			roles = append(roles, log.StringValue(role))
		}
		list = append(list, log.Slice("user.roles", roles...))
	}
	if e.Source != nil {
		add("client.address", e.Source.Address)
		add("user_agent.original", e.Source.UserAgent)
	}
	add("perdure.thread", e.Thread)
	add("perdure.run", e.Run)
	add("perdure.agent", e.Agent)
	add("perdure.approval", e.Approval)
	add("perdure.schedule", e.Schedule)
	for _, name := range slices.Sorted(maps.Keys(e.Details)) {
		add("perdure.audit.details."+name, e.Details[name])
	}
	return list
}
