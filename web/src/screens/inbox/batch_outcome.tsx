import type { Approval, BatchResult, RecordedDecision } from "@perdure/client";
import { decidedStatus, decidedText, personText } from "../../components/decision_text";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Table } from "../../components/table";
import { Time } from "../../components/time";
import { summaryOf, titleOf } from "./approval_title";

/** Properties of a BatchOutcome. */
export interface BatchOutcomeProps {
  approvals: readonly Approval[];
  /** The results, in the order of the approvals. */
  results: readonly BatchResult[];
}

/** The result of each decision of a batch. */
export function BatchOutcome({ approvals, results }: BatchOutcomeProps) {
  return (
    <Table
      label="Results"
      rows={approvals.map((approval, i) => ({ approval, result: results[i]! }))}
      keyOf={({ approval }) => approval.id}
      columns={[
        { title: "Call", cell: ({ approval }) => <><strong>{safeText(titleOf(approval))}</strong> <span className="mono muted">{safeText(summaryOf(approval))}</span></> },
        { title: "Result", cell: ({ result }) => <Result result={result} /> },
      ]}
    />
  );
}

function Result({ result }: { result: BatchResult }) {
  const { status, code, decision = "", missing = 0, repeated, detail } = result;
  const recorded = result.recorded as RecordedDecision | undefined;
  if (status === 200 && missing > 0) return <><Status value="open" text="vote counts" /> {missing} more needed</>;
  if (status === 200 && !repeated) return <Status value={decidedStatus(decision)} text={decidedText(decision)} />;
  if (code === "other_edit") return <><Status value="failed" text="not counted" /> Others vote for an edit. Open it to vote.</>;
  if (recorded) {
    return (
      <>
        <Status value={decidedStatus(recorded.decision)} text={decidedText(recorded.decision)} /> {status === 200 ? "before" : "before, so yours changed nothing:"} {safeText(personText(recorded.by))}
        {recorded.at !== undefined && <>, <Time at={recorded.at} /></>}
      </>
    );
  }
  if (status === 200) return <Status value={decidedStatus(decision)} text={decidedText(decision)} />;
  return <><Status value="failed" text={status === 403 ? "not allowed" : "refused"} /> {safeText(detail ?? code ?? "")}</>;
}
