import type { Approval } from "@perdure/client";
import { useMemo } from "react";
import { Choice, type Option } from "../../components/choice";
import type { Filter } from "./inbox_filter";
import styles from "./inbox.module.css";

/** Properties of Filters. */
export interface FiltersProps {
  filter: Filter;
  /** Approvals whose agents, tools and approvers can be chosen. */
  known: readonly Approval[];
  onChange: (filter: Filter) => void;
}

/** The fields that narrow the list. */
export function Filters({ filter, known, onChange }: FiltersProps) {
  const options = useMemo(
    () => ({
      agent: optionsOf("All agents", known.map(({ agent }) => agent), filter.agent),
      tool: optionsOf("All tools", known.map(({ toolName }) => toolName), filter.tool),
      assignee: optionsOf("Anyone", ["me", ...known.flatMap(({ approvers }) => approvers)], filter.assignee),
    }),
    [known, filter],
  );
  const change = (member: "agent" | "tool" | "assignee") => (value: string) => {
    const { [member]: _, ...rest } = filter;
    onChange(value === "" ? rest : { ...rest, [member]: value });
  };
  return (
    <div className={styles.filters}>
      <Choice label="Agent" isLabelHidden options={options.agent} value={filter.agent ?? ""} onChange={change("agent")} />
      <Choice label="Tool" isLabelHidden options={options.tool} value={filter.tool ?? ""} onChange={change("tool")} />
      {filter.view !== "decided" && <Choice label="Assignee" isLabelHidden options={options.assignee} value={filter.assignee ?? ""} onChange={change("assignee")} />}
    </div>
  );
}

function optionsOf(all: string, values: string[], chosen: string | undefined): Option[] {
  const names = new Set([...values, chosen ?? ""].filter((name) => name !== "")); // a remote agent asks without a tool
  return [{ id: "", label: all }, ...[...names].sort().map((id) => ({ id, label: id === "me" ? "Me" : id }))];
}
