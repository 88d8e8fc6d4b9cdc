import type { Agent } from "@perdure/client";
import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import { safeText } from "../../components/safe_text";
import { paths } from "../../paths";
import styles from "./agent_introduction.module.css";
import type { AgentDetails } from "./use_agent";

/** Tells a person who begins a chat what the agent is for, which model it uses, and what it can do. */
export function AgentIntroduction({ agent }: { agent: AgentDetails }) {
  const { name, description, model, capabilities } = agent;
  const facts: [string, ReactNode][] = [
    ["Model", <><span className="mono">{safeText(model)}</span>{model.startsWith("scripted/") && <span className="muted">: a script, which needs no key</span>}</>],
    ...abilitiesOf(agent).map(([title, names]): [string, ReactNode] => [title, <Names key={title} names={names} />]),
    ["Approvals", capabilities.humanInTheLoop?.approvals === true && "Some calls wait until a person approves them, here or in the inbox"],
  ];
  return (
    <section className={styles.introduction} aria-label={`About ${safeText(name)}`}>
      <p>{description ? safeText(description) : <span className="muted">This agent has no description.</span>} <Link href={paths.agent(name)}>About this agent</Link></p>
      <dl className={styles.facts}>
        {facts.filter(([, value]) => value).map(([title, value]) => (
          <Fragment key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </section>
  );
}

const kinds: readonly [prefix: string, title: string][] = [["agent:", "Subagents"], ["handoff:", "Hands over to"], ["client:", "Tools of this page"]];

// The names of the tools by kind, without the prefix of the kind.
function abilitiesOf({ tools = [], steps }: Pick<Agent, "tools" | "steps">): [string, string[]][] {
  const own = tools.filter((tool) => !kinds.some(([prefix]) => tool.startsWith(prefix)));
  const named = kinds.map(([prefix, title]): [string, string[]] => [title, tools.filter((tool) => tool.startsWith(prefix)).map((tool) => tool.slice(prefix.length))]);
  const stepNames = steps?.flatMap(({ name }) => (name === undefined ? [] : [name])) ?? [];
  return ([["Steps", stepNames], ["Tools", own], ...named] as [string, string[]][]).filter(([, names]) => names.length > 0);
}

const shownNames = 12;

function Names({ names }: { names: readonly string[] }) {
  const rest = names.length - shownNames;
  return (
    <span className={styles.names}>
      {names.slice(0, shownNames).map((name) => <span key={name} className={styles.name}>{name === "*" ? "all that it declares" : safeText(name)}</span>)}
      {rest > 0 && <span>and {rest} more</span>}
    </span>
  );
}
