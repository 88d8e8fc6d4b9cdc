import type { UserMessage } from "@ag-ui/client";
import { connectWithRetry, errorFrom } from "./attempts.js";
import { Backoff } from "./backoff.js";
import type { operations, Schemas } from "./schemas.js";
import { errorOf, type Problem, problemOf } from "./problem.js";
import type { RequestFrame } from "./socket_frames.js";
import type { Transport } from "./transport.js";

/** A part of a message's content, by the types of the installed version of AG-UI. */
export type ContentPart = Exclude<UserMessage["content"], string>[number];

/** The result of a client tool call. */
export interface ToolResult {
  /** The ID of the call. */
  toolCallId: string;
  /** What the model receives. */
  content: string | ContentPart[];
  /** The error of a tool that failed. */
  error?: string;
}

/** Options of one request. */
export interface CommandOptions {
  /** Ends the attempts when it is aborted. Whether a command took effect is then unknown. */
  signal?: AbortSignal;
}

/**
 * Which further calls of the tool in this thread an approval covers: those with equal arguments (`arguments` or true), or
 * all (`tool`).
 */
export type Remember = Schemas["Remember"];

/**
 * The decision of an approval, or the answer to a question. The model receives the `reason`.
 *
 * - `approve`: the tool is called. A soft limit is extended.
 * - `edit`: the tool is called with other arguments. `args` has all of them, as JSON.
 * - `reject`: the tool is not called.
 * - `answer`: `content` is any JSON that fits the schema of the question (`responseSchema` of the interrupt). For an approval
 *   it is the result of the call, which is then not made.
 */
export type Decision =
  | { decision: "approve"; remember?: Remember; reason?: string }
  | { decision: "edit"; args: unknown; reason?: string }
  | { decision: "reject"; reason?: string }
  | { decision: "answer"; content: unknown; reason?: string };

/** A decision with the members of all kinds, as the API receives it. */
export type DecisionBody = operations["decideApproval"]["requestBody"]["content"]["application/json"];

/** The acknowledgement of a request that the server has durably accepted. */
export interface Accepted {
  /** Whether the server had accepted it before, so that this request changed nothing. */
  repeated: boolean;
  /** With `repeated`, for a decision: the recorded decision, which can be another caller's. */
  recorded?: Schemas["Recorded"];
  /** For a vote that does not complete the quorum: how many more approvers must vote for the same arguments. */
  missing?: number;
  /** For a vote that does not complete the quorum: the votes for each proposal. */
  tallies?: Schemas["Tally"][];
  /** The cursor to pass as `waitFor` to a request that must show the effect. An agent does that for its own commands. */
  cursor?: string;
  [member: string]: unknown;
}

export interface Command {
  /** Default: POST with a body, and GET without one. */
  method?: "GET" | "POST" | "PUT" | "DELETE";
  url: string;
  headers: Record<string, string>;
  /** A string is sent as it is, as YAML. A Blob is a file. */
  body?: object | string | undefined;
  /** The type of an object in the body. Default: application/json. */
  contentType?: string;
  /** The type of the response: JSON by default, a text, or the bytes of a file, which become a Blob. */
  accept?: "application/json" | "text/plain" | "application/yaml" | "*/*";
  /** The frame of the same request, if the WebSocket has it. */
  frame?: RequestFrame;
  signal?: AbortSignal | undefined;
  /** Reports whether a refusal is temporary, so that the command must be repeated. */
  isEarly?: ((problem: Problem) => boolean) | undefined;
}

/**
 * Sends a request, repeats it until the server answers, and returns the answer; {} if it has no body. Rejects with a
 * ProblemError if the server refuses the request, with a ConnectionLostError if all attempts fail, and with the reason of
 * an aborted signal.
 */
export async function request<Answer>(transport: Transport, command: Command): Promise<Answer> {
  const { signal = new AbortController().signal, url, body, frame } = command;
  const { method = body ? "POST" : "GET" } = command;
  const { accept = "application/json", contentType } = command;
  const headers: Record<string, string> = { ...command.headers, Accept: accept };
  const sent = body && encodeBody(body);
  if (sent) headers["Content-Type"] = contentType ?? sent.type;
  const silence = body instanceof Blob ? uploadSilence : undefined;
  const call = { url, init: { method, headers, ...(sent && { body: sent.content }) }, frame, silence };
  const backoff = new Backoff(transport.retry, transport);
  const open = () => transport.open(call, signal);
  for (let lost: Error | undefined; ; ) {
    const connection = await connectWithRetry(open, backoff, signal, lost);
    const { ok, status } = connection.response;
    let content: string | Blob;
    try {
      content = await (ok && accept === "*/*" ? connection.blob() : connection.text());
    } catch (error) {
      signal.throwIfAborted();
      lost = errorFrom(error); // the answer is incomplete, so the effect is unknown
      continue;
    } finally {
      connection.close();
    }
    if (ok) backoff.connected();
    if (content instanceof Blob || (ok && accept !== "application/json")) return content as Answer;
    if (ok) return (content === "" ? {} : JSON.parse(content)) as Answer;
    const problem = problemOf(status, content);
    lost = errorOf(problem);
    if (!command.isEarly?.(problem)) throw lost;
  }
}

// The server bounds an upload to an hour.
const uploadSilence = 3_600_000;

function encodeBody(body: object | string): { type: string; content: string | Blob } {
  if (typeof body === "string") return { type: "application/yaml", content: body };
  if (body instanceof Blob) return { type: body.type || "application/octet-stream", content: body };
  return { type: "application/json", content: JSON.stringify(body) };
}

/** Sends a command. The server may have accepted it before. */
export async function send(transport: Transport, command: Command): Promise<Accepted> {
  const answer = await request<Partial<Accepted>>(transport, command);
  return { ...answer, repeated: answer.repeated === true };
}
