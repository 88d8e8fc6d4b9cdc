import type { Problem } from "./problem.js";

/**
 * A request of a client, without its ID: docs/reference/websocket.md. The server has no frame `approvals`: the tab with the
 * sockets reads the changes of approvals over HTTP.
 */
export type RequestFrame =
  | { type: "run"; agent: string; revision?: string | undefined; input: unknown; waitFor?: string | undefined }
  | {
      type: "subscribe";
      threadId: string;
      runId?: string;
      after?: string | undefined;
      join?: boolean;
      follow?: boolean;
      timestamps?: boolean;
      waitFor?: string | undefined;
      protocolVersion?: string;
    }
  | { type: "approvals"; query: string; after?: string | undefined }
  | { type: "cancel"; threadId: string; runId: string; reason?: string | undefined }
  | { type: "steer"; threadId: string; message: unknown }
  | { type: "decide"; threadId: string; approvalId: string; decision: string; args?: unknown; content?: unknown; reason?: unknown; remember?: unknown }
  | { type: "tool_result"; threadId: string; toolCallId: string; content: unknown; error?: unknown };

export interface AckFrame {
  type: "ack";
  request: string;
  threadId?: string;
  runId?: string;
  cursor?: string;
  result?: unknown;
  /** Set by the client if the stream uses server-sent events, because a proxy refuses WebSockets. */
  transport?: "sse";
}

export interface EventFrame {
  type: "event";
  cursor?: string;
  event: { type: string; runId?: string };
}

export interface ErrorFrame extends Problem {
  type: "error";
  /** The pause before the next attempt, in seconds. */
  retryAfter?: number;
}

/** A frame that responds to a request. */
export type ResponseFrame = AckFrame | EventFrame | ErrorFrame | { type: "end" };

/** Reports whether the request of this type has the frame as its last one. */
export function isLast(request: RequestFrame["type"], { type }: ResponseFrame): boolean {
  if (type === "ack") return request === "cancel" || request === "decide" || request === "tool_result";
  return type === "end" || type === "error";
}

/** The most bytes of a frame that the server accepts. */
export const maxFrameBytes = 10 << 20;
