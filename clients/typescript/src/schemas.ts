import type { components, operations } from "./openapi.js";

export type { operations };

/** The schemas of the HTTP API. */
export type Schemas = components["schemas"];

/** A file of the server. A content part refers to it by its `url`. */
export type StoredFile = Schemas["File"];

/** A thread in a list. */
export type ThreadEntry = Schemas["ThreadEntry"];
/** The summary of a thread. */
export type Thread = Schemas["Thread"];
/** Names and values that callers have set for a thread. */
export type ThreadMetadata = Schemas["ThreadMetadata"];
/** Access to a thread for the callers with a subject, with a role, or for everyone of the tenant. */
export type Share = Schemas["Share"];
/** The event that started a run, by a trigger of the run's agent. */
export type TriggerEvent = Schemas["TriggerEvent"];
/** A run of a thread. */
export type Run = Schemas["Run"];
/** A run with its spans, in the order in which they began. */
export type Trace = Schemas["Trace"];
/** A part of a run, such as a model call. */
export type Span = Schemas["Span"];
/** The first event of the stream of a trace has the trace, later ones have spans that replace those with the same IDs. */
export type TraceEvent = Schemas["TraceEvent"];
/** The messages that an input removed from the conversation. */
export type Superseded = Schemas["Superseded"];
/** An approval or a question, open or decided. */
export type Approval = Schemas["Approval"];
/** A vote, or the decision of an approval. */
export type Vote = Schemas["Decision"];
/** The votes for one set of arguments. */
export type Tally = Schemas["Tally"];
/** The recorded decision of an approval. */
export type RecordedDecision = Schemas["Recorded"];
/** The result of one decision of a batch. */
export type BatchResult = Schemas["BatchResult"];
/** An open wait of a run for a time or an event. */
export type Wait = Schemas["Wait"];
/** The acknowledgement of an event. With `duplicate`, the server had received it before. */
export type EventReceipt = Schemas["EventReceipt"];
/** An agent and its current revision. */
export type Agent = Schemas["Agent"];
/** The result of a check of a definition. */
export type Validation = Schemas["Validation"];
/** A published revision of an agent. */
export type Revision = Schemas["Revision"];
/** The state of workers, task queues, the log and servers. */
export type System = Schemas["System"];
/** What the runs of a group have used. */
export type UsageItem = Schemas["UsageItem"];
/** What the runs of a period have used. */
export type UsageReport = Schemas["UsageReport"];
/** A place in a run where a fork may begin. */
export type ForkPoint = Schemas["ForkPoint"];
/** An entry of the audit log. */
export type AuditEntry = Schemas["AuditEntry"];
/** A schedule as it is created or replaced. */
export type ScheduleSpec = Schemas["ScheduleSpec"];
/** A schedule. */
export type Schedule = Schemas["Schedule"];

/** The query parameters of an operation. */
export type QueryOf<Name extends keyof operations> = operations[Name] extends { parameters: { query?: infer Query } } ? NonNullable<Query> : never;

/** The JSON body of the response of an operation. */
export type AnswerOf<Name extends keyof operations> = operations[Name] extends {
  responses: { 200: { content: { "application/json": infer Answer } } };
}
  ? Answer
  : never;
