import type { Message } from "@ag-ui/client";
import type { Command, Decision, ToolResult } from "./commands.js";
import { approvalURL, runURL, threadURL } from "./routes.js";

/** A command without the options of its sender. */
export type ThreadCommand = Pick<Command, "url" | "body" | "frame">;

/** Makes the commands to the threads of a server. */
export class ThreadCommands {
  constructor(private readonly base: string) {}

  cancel(threadId: string, runId: string, reason: string | undefined): ThreadCommand {
    return { url: runURL(this.base, threadId, runId) + "/cancel", body: { reason }, frame: { type: "cancel", threadId, runId, reason } };
  }

  decide(threadId: string, approvalId: string, decision: Decision): ThreadCommand {
    return {
      url: approvalURL(this.base, threadId, approvalId),
      body: decision,
      frame: { type: "decide", threadId, approvalId, ...plain(decision) },
    };
  }

  toolResult(threadId: string, result: ToolResult): ThreadCommand {
    return { url: threadURL(this.base, threadId) + "/tool-results", body: result, frame: { type: "tool_result", threadId, ...plain(result) } };
  }

  steer(threadId: string, message: Message): ThreadCommand {
    return { url: threadURL(this.base, threadId) + "/messages", body: { message }, frame: { type: "steer", threadId, message: plain(message) } };
  }

  pause(threadId: string): ThreadCommand {
    return { url: threadURL(this.base, threadId) + "/pause", body: {} };
  }

  resume(threadId: string): ThreadCommand {
    return { url: threadURL(this.base, threadId) + "/resume", body: {} };
  }
}

// Frames go to other tabs, so they have only what JSON has.
const plain = <T extends object>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
