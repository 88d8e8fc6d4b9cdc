import { Link } from "wouter";
import { Empty } from "../../components/page";
import { paths } from "../../paths";
import { type Filter, queryOf } from "./inbox_filter";
import styles from "./inbox.module.css";

/** What the list shows if no approval fits its filter. */
export function NoApprovals({ filter, open }: { filter: Filter; open: number }) {
  if (filter.view === "decided") return <Empty title="No decisions"><p>Decisions of the last 30 days appear here.</p></Empty>;
  if (queryOf(filter) !== "") {
    return (
      <Empty title={filter.assignee === "me" ? "Nothing waits for you" : "No approval fits"}>
        {open > 0 && <Link href={paths.inbox}>Show all {open}</Link>}
      </Empty>
    );
  }
  return (
    <Empty title="Nothing waits for a decision">
      <p>Calls that need an approval, questions of tools and soft limits of all threads appear here. An approval rule in the definition of an agent:</p>
      <pre tabIndex={0} aria-label="Example">{example}</pre>
    </Empty>
  );
}

const example = `approvals:
  - tools: [issue_refund]
    when: args.amount > 50`;

/** What the screen shows next to the list until an approval is chosen. */
export function NoneChosen({ hasApprovals, areDecided }: { hasApprovals: boolean; areDecided: boolean }) {
  if (!hasApprovals) return null;
  if (areDecided) return <div className={styles.none}><p>Choose a decision, with <kbd>j</kbd> and <kbd>k</kbd> by keys.</p></div>;
  return (
    <div className={styles.none}>
      <p>Choose an approval, or decide by keys:</p>
      <dl>
        <div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next, previous</dd></div>
        <div><dt><kbd>a</kbd></dt><dd>approve, or answer</dd></div>
        <div><dt><kbd>e</kbd></dt><dd>edit, then approve</dd></div>
        <div><dt><kbd>r</kbd></dt><dd>reject with a reason</dd></div>
        <div><dt><kbd>x</kbd></dt><dd>select, then <kbd>A</kbd> or <kbd>R</kbd> for all selected ones</dd></div>
      </dl>
    </div>
  );
}
