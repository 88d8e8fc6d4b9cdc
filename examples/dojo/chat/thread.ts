import { PerdureClient } from "@perdure/client";

export const client = new PerdureClient({ baseUrl: location.origin });

/**
 * Returns the ID of the page's thread. It is the fragment of the URL, so that a reload and a second tab show the same
 * thread.
 */
export function threadId(): string {
  if (location.hash.length <= 1) history.replaceState(null, "", `#${crypto.randomUUID()}`);
  return location.hash.slice(1);
}

addEventListener("hashchange", () => location.reload());
