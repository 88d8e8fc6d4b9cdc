const segment = encodeURIComponent;

export const agentURL = (base: string, agent: string) => `${base}/v1/agents/${segment(agent)}`;

/** The URL of an agent's run endpoint. */
export const runsURL = (base: string, agent: string) => `${agentURL(base, agent)}/runs`;

/** The base URL of a run endpoint, or undefined if the URL is not that of a run endpoint. */
export const baseOf = (url: string) => /^(.*)\/v1\/agents\/[^/?#]+\/runs\/?(?:[?#].*)?$/.exec(url)?.[1];

/** The agent's name in the URL of a run endpoint, or undefined if the URL is not that of a run endpoint. */
export function agentIn(url: string): string | undefined {
  const name = /\/v1\/agents\/([^/?#]+)\/runs\/?(?:[?#].*)?$/.exec(url)?.[1];
  return name === undefined ? undefined : decodeURIComponent(name);
}

export const threadURL = (base: string, thread: string) => `${base}/v1/threads/${segment(thread)}`;

export const runURL = (base: string, thread: string, run: string) => `${threadURL(base, thread)}/runs/${segment(run)}`;

export const approvalURL = (base: string, thread: string, approval: string) => `${threadURL(base, thread)}/approvals/${segment(approval)}`;

export const scheduleURL = (base: string, schedule: string) => `${base}/v1/schedules/${segment(schedule)}`;

export const fileURL = (base: string, file: string) => `${base}/v1/files/${segment(file)}`;

/** The ID of a file in its URL. */
export const fileIn = (url: string) => decodeURIComponent(url.split("/").at(-1)!);

export const uploadsURL = (base: string) => `${base}/v1/uploads`;

export const uploadURL = (base: string, upload: string) => `${uploadsURL(base)}/${upload}`;

/** Adds the parameters that are not undefined to a URL. */
export function withQuery(url: string, parameters: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? url : `${url}${url.includes("?") ? "&" : "?"}${query}`;
}
