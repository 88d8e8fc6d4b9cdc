/** What the page knows before its first request (internal/console). */
export interface Settings {
  /** How requests are authenticated: not by this page, with a token that its user enters, or with a session. */
  auth: "none" | "token" | "session";
  /** The version of the API. */
  version: string;
  /** The path of the API behind a proxy, without a slash at its end. */
  prefix?: string;
  /** The template of addresses in Temporal's UI, with {workflowId}. */
  workflowUrl?: string;
  /** The template of addresses of traces, with {runId} and {threadId}. */
  traceUrl?: string;
}

/** The settings of this page. */
export const settings: Settings = JSON.parse(document.getElementById("settings")?.textContent || "{}") as Settings;

const prefix = settings.prefix ?? "";

/** The path of the console, without a slash at its end. */
export const consolePath = `${prefix}/console`;

/** The address of the API, without `/v1`. */
export const apiURL = location.origin + prefix;
