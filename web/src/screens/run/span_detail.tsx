import type { ReactNode } from "react";
import { Link } from "wouter";
import { Button, IconButton } from "../../components/button";
import { CloseIcon, ForkIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { Status } from "../../components/status";
import { Duration, Time } from "../../components/time";
import { paths } from "../../paths";
import { Attempts } from "./attempts";
import { Failure } from "./failure";
import { InterruptDetail } from "./interrupt_detail";
import { moneyText } from "../../components/money";
import { SpanContent } from "./span_content";
import { kindNames, SpanIcon } from "./span_icon";
import styles from "./span_detail.module.css";
import { causeOf, isSame, isWait, type Span, type SpanKind, titleOf, type Trace, treeOf } from "./trace";

/** Properties of a SpanDetail. */
export interface SpanDetailProps {
  trace: Trace;
  span: Span;
  /** The run of the trace, such as "run 2", if the page is that of another run. */
  otherRun?: string | undefined;
  onClose: () => void;
  /** Shows the events of a span. */
  onShowEvents: (span: Span) => void;
  /** Opens the dialog that forks the run before a span. Absent: it cannot be forked here. */
  onFork?: ((before: Span) => void) | undefined;
}

/** What is known about a span: its facts, its error, its content and its attempts. */
export function SpanDetail({ trace, span, otherRun, onClose, onShowEvents, onFork }: SpanDetailProps) {
  const wait = waitOf(trace, span);
  return (
    <aside className={styles.panel} aria-label="Details of the span" onKeyDown={(event) => event.key === "Escape" && onClose()}>
      <header className={styles.header} data-kind={span.kind}>
        <SpanIcon kind={span.kind} />
        <h2 id="span-title" className="truncate" tabIndex={-1} title={safeText(span.name)}>{safeText(titleOf(span))}</h2>
        <Status value={span.retry && span.status === "running" ? "retrying" : span.status} />
        <IconButton label="Close the details" onPress={onClose}><CloseIcon /></IconButton>
      </header>
      <div className={styles.body} tabIndex={0} role="region" aria-label="Content of the span">
        {span.error && <SpanFailure trace={trace} span={span} />}
        {span.retry && span.status === "running" && <RetryNotice retry={span.retry} />}
        <Facts trace={trace} span={span} otherRun={otherRun} />
        {wait && <InterruptDetail key={wait.id} threadId={trace.threadId} span={wait} />}
        {span.attempts && span.attempts.length > 0 && <Attempts attempts={span.attempts} told={span.error ?? span.retry?.error} />}
        {(wait !== span || isDecided(span)) && <SpanContent threadId={trace.threadId} span={span} />}
        <div className={styles.links}>
          {onFork && forkable.has(span.kind) && <Button onPress={() => onFork(span)}><ForkIcon />Fork before this</Button>}
          {span.firstCursor !== undefined && <button type="button" className={styles.link} onClick={() => onShowEvents(span)}>Show the events of this span</button>}
        </div>
      </div>
    </aside>
  );
}

// The wait for people that a span is, or that a step consists of.
function waitOf({ spans }: Trace, span: Span): Span | undefined {
  if (span.kind === "interrupt") return span;
  return span.kind === "step" ? spans.findLast(({ kind, parentId }) => kind === "interrupt" && parentId === span.id) : undefined;
}

const isDecided = ({ status }: Span) => status !== "waiting" && status !== "running";

// A fork before one of these has the work before it, and repeats it.
const forkable: ReadonlySet<SpanKind> = new Set(["step", "turn", "model", "tool", "subagent"]);

// The notice at the top of the page has the error of the run, and what to do about it.
function SpanFailure({ trace, span }: { trace: Trace; span: Span }) {
  const error = span.error!;
  const isToldAbove = trace.status === "failed" && isSame(error, (causeOf(treeOf(trace.spans)) ?? trace).error);
  return isToldAbove ? <p className={styles.told}>Failed with <code>{safeText(error.code)}</code>, as told above.</p> : <Failure error={error} />;
}

function RetryNotice({ retry }: { retry: NonNullable<Span["retry"]> }) {
  return (
    <Failure error={retry.error ?? { code: "failed" }} kind="retrying">
      Attempt {retry.attempt}{retry.nextAt !== undefined && <> begins <Time at={retry.nextAt} /></>}. Failing since <Time at={retry.since} />.
    </Failure>
  );
}

function Facts({ trace, span, otherRun }: Pick<SpanDetailProps, "trace" | "span" | "otherRun">) {
  const { usage, cost } = span;
  const agent = span.agent ?? (span.kind === "run" ? trace.agent : undefined);
  const started = new Date(span.startedAt).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
  return (
    <dl className={styles.facts}>
      <Fact name="Kind">{kindNames[span.kind]}</Fact>
      {otherRun !== undefined && <Fact name="Run"><Link href={`${paths.run(trace.threadId, trace.runId)}?span=${encodeURIComponent(span.id)}`}>{otherRun}</Link></Fact>}
      <Fact name="Started"><time dateTime={span.startedAt} title={new Date(span.startedAt).toLocaleString()} className="number">{started}</time></Fact>
      <Fact name={isWait(span) ? "Waited" : "Duration"}><Duration from={span.startedAt} to={span.endedAt} /></Fact>
      {agent !== undefined && <Fact name="Agent"><Link href={paths.agent(agent)}>{safeText(agent)}</Link></Fact>}
      {span.model !== undefined && <Fact name="Model">{safeText(span.model)}</Fact>}
      {usage && <Fact name="Tokens"><Tokens usage={usage} /></Fact>}
      {cost && <Fact name="Cost">{moneyText(cost)}</Fact>}
      {span.stepName !== undefined && span.stepName !== titleOf(span) && <Fact name="Step">{safeText(span.stepName)}</Fact>}
      {span.toolCallId !== undefined && <Fact name="Call ID"><code>{safeText(span.toolCallId)}</code></Fact>}
      {span.subagentRunId !== undefined && <Fact name="Subagent run"><code>{safeText(span.subagentRunId)}</code></Fact>}
    </dl>
  );
}

function Tokens({ usage }: { usage: NonNullable<Span["usage"]> }) {
  const parts = [
    `${(usage.inputTokens ?? 0).toLocaleString()} in`,
    `${(usage.outputTokens ?? 0).toLocaleString()} out`,
    ...(usage.reasoningTokens ? [`${usage.reasoningTokens.toLocaleString()} of them reasoning`] : []),
    ...(usage.cachedInputTokens ? [`${usage.cachedInputTokens.toLocaleString()} cached`] : []),
  ];
  return <span className="number">{parts.join(", ")}</span>;
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
