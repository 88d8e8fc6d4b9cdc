import { useState } from "react";
import type { Option } from "../../components/choice";
import { paths } from "../../paths";
import { useClient } from "../../session";
import { useDraft } from "../agents/draft";
import { shortRevision, useAgent } from "../agents/queries";
import type { Trace } from "./trace";

const current = "";
const draftOption = "draft";

/** The revisions of its agent with which a fork of a run can continue. */
export interface RevisionChoice {
  options: readonly Option[];
  value: string;
  choose: (id: string) => void;
  /** Returns the chosen revision, undefined = the current one. It stores the draft of this tab if that is chosen. */
  resolve: () => Promise<string | undefined>;
}

/** Chooses between the current revision, that of the run, and the draft of this tab, which comes first. */
export function useRevisionChoice({ agent, revision }: Trace): RevisionChoice {
  const client = useClient();
  const { data: published } = useAgent(agent);
  const [draft] = useDraft(agent);
  const [chosen, choose] = useState<string>();
  const isOutdated = revision !== undefined && published !== undefined && published.revision !== revision;
  const value = chosen ?? (draft === undefined ? current : draftOption);
  const options = [
    ...(draft === undefined ? [] : [{ id: draftOption, label: "Your draft" }]),
    { id: current, label: published === undefined ? "Current revision" : `Current revision ${shortRevision(published.revision)}` },
    ...(isOutdated ? [{ id: revision, label: `Revision of this run ${shortRevision(revision)}` }] : []),
  ];
  const resolve = async () => {
    if (value === draftOption && draft) return (await client.draftAgent(agent, draft.text, published && { scope: published.scope })).revision;
    return value === current ? undefined : value;
  };
  return { options, value, choose, resolve };
}

/** The path of the editor of a run's agent, which leads back to the fork of the run. */
export const repairPath = ({ agent, threadId, runId }: Trace): string =>
  `${paths.agent(agent)}/definition?${new URLSearchParams({ edit: "", repairs: paths.run(threadId, runId) })}`;
