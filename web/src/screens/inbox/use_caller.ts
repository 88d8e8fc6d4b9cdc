import type { Approval } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useClient } from "../../session";

/** The user of the page, as the API has authenticated them. */
export type Caller = Awaited<ReturnType<ReturnType<typeof useClient>["caller"]>>;

/** Returns the user of the page, or undefined until the API has told. */
export function useCaller(): Caller | undefined {
  const client = useClient();
  return useQuery({ queryKey: ["caller"], queryFn: ({ signal }) => client.caller({ signal }), staleTime: Infinity }).data;
}

/** Whether the user has voted for an open approval. */
export const hasVoted = ({ decisions }: Approval, caller: Caller | undefined): boolean => caller !== undefined && decisions.some(({ by = "" }) => by === caller.subject);

/**
 * Returns why the user may not decide an open approval, as far as the page can tell. The API knows more, such as the rights to
 * decide in a thread.
 */
export function exclusionOf({ approvers, notByRequester = false, contributors = [] }: Approval, caller: Caller | undefined): "contributor" | "others" | undefined {
  if (caller === undefined) return undefined;
  const { subject, roles } = caller;
  if (notByRequester && contributors.includes(subject)) return "contributor";
  const isNamed = approvers.length === 0 || approvers.some((name) => name === subject || (name.startsWith("role:") && roles.includes(name.slice(5))));
  return isNamed ? undefined : "others";
}
