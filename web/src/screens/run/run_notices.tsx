import { Link } from "wouter";
import { Button } from "../../components/button";
import { Countdown } from "../../components/countdown";
import { ForkIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { Time } from "../../components/time";
import { waitText } from "../../components/wait_text";
import { paths } from "../../paths";
import { Failure } from "./failure";
import { repairPath } from "./revision_choice";
import styles from "./run_notices.module.css";
import { kindNames } from "./span_icon";
import { StuckNotice } from "./stuck_notice";
import { useWait } from "./use_wait";
import { causeOf, openInterrupts, retrying, stepOf, type Span, titleOf, type Trace, type Tree } from "./trace";

/** Properties of RunNotices. */
export interface RunNoticesProps {
  trace: Trace;
  tree: Tree;
  /** Selects a span in the timeline. */
  onShow: (span: Span) => void;
  /** Opens the dialog that forks the run before its failure. */
  onFork: () => void;
}

/** What a reader of the run must know first: why it failed, what is attempted again, and for what it waits. */
export function RunNotices({ trace, tree, onShow, onFork }: RunNoticesProps) {
  const notices = [
    trace.status === "failed" && <FailureNotice key="failed" {...{ trace, tree, onShow, onFork }} />,
    ...retrying(trace.spans).slice(0, 3).map((span) => <RetryNotice key={span.id} span={span} onShow={onShow} />),
    ...openInterrupts(trace.spans).slice(0, 3).map((span) => <WaitNotice key={span.id} {...{ trace, tree, span, onShow }} />),
    trace.truncated && <p key="truncated" className={styles.line}>The run has more spans than a trace: the last ones are missing here. The events have all.</p>,
  ].filter(Boolean);
  if (trace.status === "running") notices.unshift(<StuckNotice key="stuck" threadId={trace.threadId} />);
  return notices.length === 0 ? null : <div className={styles.notices}>{notices}</div>;
}

function FailureNotice({ trace, tree, onShow, onFork }: RunNoticesProps) {
  const cause = causeOf(tree);
  const error = cause?.error ?? trace.error ?? { code: "failed" };
  const actions = (
    <>
      <Link href={repairPath(trace)}>Edit the definition</Link>
      {cause && <Button onPress={() => onShow(cause)}>Show the {kindNames[cause.kind]}</Button>}
      <Button onPress={onFork}><ForkIcon />Fork and repair</Button>
    </>
  );
  return (
    <section aria-label="Why the run failed">
      <Failure title={cause ? <>The run failed in the {kindNames[cause.kind]} “{safeText(titleOf(cause))}”</> : "The run failed"} error={error} actions={actions} />
    </section>
  );
}

function RetryNotice({ span, onShow }: { span: Span; onShow: (span: Span) => void }) {
  const { attempt, error, since, nextAt } = span.retry!;
  return (
    <section aria-label="Attempted again">
      <Failure
        kind="retrying"
        title={<>The {kindNames[span.kind]} “{safeText(span.name)}” fails, and is attempted again</>}
        error={error ?? { code: "failed" }}
        actions={<Button onPress={() => onShow(span)}>Show the attempts</Button>}
      >
        Failing since <Time at={since} />. Attempt {attempt}{nextAt === undefined ? " is running" : <> begins <Time at={nextAt} /></>}.
      </Failure>
    </section>
  );
}

function WaitNotice({ trace, tree, span, onShow }: { trace: Trace; tree: Tree; span: Span; onShow: (span: Span) => void }) {
  const step = stepOf(tree, span);
  const isOfStep = step !== undefined && step.id === span.parentId;
  const wait = useWait(trace.threadId, span);
  if (wait) {
    return (
      <p className={styles.line} data-kind="waiting">
        <button type="button" className={styles.link} onClick={() => onShow(span)}>{safeText(step ? titleOf(step) : span.name)}</button> waits {safeText(waitText(wait, wait.until))}.{" "}
        <Countdown to={wait.until} event={wait.kind === "timer" ? "continues" : "stops waiting"} />
      </p>
    );
  }
  return (
    <p className={styles.line} data-kind="waiting">
      Waits for a decision about <button type="button" className={styles.link} onClick={() => onShow(span)}>{safeText(isOfStep ? titleOf(step) : span.name)}</button>
      {step && !isOfStep && <> in the step {safeText(titleOf(step))}</>}. Asked <Time at={span.startedAt} />.{" "}
      {span.interruptId !== undefined && <Link href={paths.approval(trace.threadId, span.interruptId)}>Decide in the inbox</Link>}
    </p>
  );
}
