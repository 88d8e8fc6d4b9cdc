import type { Agent as AgentInfo } from "@perdure/client";
import { lazy, Suspense } from "react";
import { Link, useLocation, useParams } from "wouter";
import { Button } from "../../components/button";
import { ChatIcon } from "../../components/icons";
import { Empty, Loading, Page } from "../../components/page";
import { Problem } from "../../components/problem";
import { useShortcuts } from "../../components/shortcuts";
import { TabLinks } from "../../components/tab_links";
import { paths } from "../../paths";
import styles from "./agent.module.css";
import { AgentOverview } from "./agent_overview";
import { AgentRuns } from "./agent_runs";
import { DefinitionTab } from "./definition";
import { shortRevision, useAgent } from "./queries";
import { RevisionsTab } from "./revisions";

const AgentGraph = lazy(() => import("./agent_graph"));

type Tab = "" | "definition" | "revisions" | "runs" | "graph";

const tabs: { tab: Tab; label: string; isShown?: (agent: AgentInfo) => boolean }[] = [
  { tab: "", label: "Overview" },
  { tab: "definition", label: "Definition" },
  { tab: "revisions", label: "Revisions" },
  { tab: "runs", label: "Runs" },
  { tab: "graph", label: "Graph", isShown: (agent) => (agent.steps?.length ?? 0) > 0 },
];

/** An agent: what it is, its definition and revisions, its runs, and the graph of a pipeline. */
export default function Agent({ agent: name }: { agent: string }) {
  const tab = (useParams()["*"] ?? "") as Tab;
  const [, navigate] = useLocation();
  const isFilled = tab === "graph" || tab === "definition"; // the other tabs scroll, by the keyboard too
  const shown = tabs.find((entry) => entry.tab === tab);
  const { data: agent, error, refetch } = useAgent(name);
  const href = (to: Tab) => (to === "" ? paths.agent(name) : `${paths.agent(name)}/${to}`);
  useShortcuts("Agent", [
    { keys: "c", label: "Chat with the agent", run: () => navigate(paths.newChat(name)) },
    { keys: "e", label: "Edit the definition", run: () => navigate(`${href("definition")}?edit`) },
  ]);
  return (
    <Page
      title={name}
      layout="fixed"
      trail={<Link href={paths.agents}>Agents</Link>}
      beside={agent !== undefined && <code className={styles.revision} title={agent.revision}>{shortRevision(agent.revision)}</code>}
      actions={<Button kind={tab === "definition" ? "plain" : "primary"} onPress={() => navigate(paths.newChat(name))}><ChatIcon />Chat</Button>}
    >
      <TabLinks
        label={`Agent ${name}`}
        tabs={tabs.filter(({ tab: to, isShown }) => isShown === undefined || to === tab || (agent !== undefined && isShown(agent)))
          .map(({ tab: to, label }) => ({ href: href(to), label, isCurrent: to === tab }))}
      />
      <div className={isFilled ? styles.filled : styles.scrolling} {...(!isFilled && { role: "region", "aria-label": `${name}, ${shown?.label ?? "no page"}`, tabIndex: 0 })}>
        {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
        {agent === undefined && error === null && <Loading />}
        {agent !== undefined && <Suspense fallback={<Loading />}><TabContent tab={tab} agent={agent} /></Suspense>}
      </div>
    </Page>
  );
}

function TabContent({ tab, agent }: { tab: Tab; agent: AgentInfo }) {
  switch (tab) {
    case "": return <AgentOverview agent={agent} />;
    case "definition": return <DefinitionTab agent={agent} />;
    case "revisions": return <RevisionsTab agent={agent} />;
    case "runs": return <AgentRuns agent={agent} />;
    case "graph": return <AgentGraph agent={agent} />;
  }
  return <Empty title="This address has no page"><Link href={paths.agent(agent.name)}>Go to the agent</Link></Empty>;
}
