import type { Span, Trace } from "@perdure/client";

export type { Span, Trace };
export type SpanKind = Span["kind"];
export type SpanStatus = Span["status"];
/** One attempt of a call. */
export type Attempt = NonNullable<Span["attempts"]>[number];
/** What an attempt had streamed before it was withdrawn. */
export type Withdrawn = NonNullable<Attempt["withdrawn"]>;
/** Why a run, a span or an attempt has failed. */
export type TraceError = NonNullable<Span["error"]>;

/** A span with its place in the tree. */
export interface TreeNode {
  span: Span;
  parent: TreeNode | undefined;
  children: TreeNode[];
  /** The depth from 1, for the root. */
  level: number;
}

/** The tree of a trace. */
export interface Tree {
  roots: TreeNode[];
  byId: Map<string, TreeNode>;
}

/** Returns the tree of spans. A span whose parent is missing is a root. */
export function treeOf(spans: readonly Span[]): Tree {
  const byId = new Map<string, TreeNode>(spans.map((span) => [span.id, { span, parent: undefined, children: [], level: 1 }]));
  const roots: TreeNode[] = [];
  for (const node of byId.values()) {
    node.parent = node.span.parentId === undefined ? undefined : byId.get(node.span.parentId);
    (node.parent?.children ?? roots).push(node);
  }
  for (const { children } of byId.values()) children.sort(byNumber);
  const place = (node: TreeNode, level: number) => {
    node.level = level;
    for (const child of node.children) place(child, level + 1);
  };
  for (const root of roots) place(root, 1);
  return { roots, byId };
}

// Branches of a map begin in any order, and are read in that of its items: items/2 before items/10.
function byNumber({ span: a }: TreeNode, { span: b }: TreeNode): number {
  return a.kind === "branch" && b.kind === "branch" ? a.name.localeCompare(b.name, undefined, { numeric: true }) : 0;
}

const undo = "/compensate";

/** Returns what a span is called in its place in the tree: a step by the last part of its path, and what undoes a step as such. */
export function titleOf({ kind, name }: Span): string {
  if (kind !== "step") return name;
  const isUndo = name.endsWith(undo);
  const last = (isUndo ? name.slice(0, -undo.length) : name).split("/").at(-1)!;
  return isUndo ? `undo ${last}` : last;
}

/** Whether a span is a time in which nothing is done: for people, or of a pipeline. */
export const isWait = ({ kind }: Span) => kind === "interrupt" || kind === "wait";

/**
 * Returns the span that made the run fail: the last failed one without failed children, and before a compensation, which
 * follows the failure.
 */
export function causeOf(tree: Tree): Span | undefined {
  const [root] = tree.roots;
  if (root?.span.status !== "failed") return undefined;
  let node = root;
  for (;;) {
    const next = node.children.findLast(({ span }) => span.status === "failed" && span.kind !== "compensation");
    if (!next) return node === root ? undefined : node.span;
    node = next;
  }
}

/** Whether two errors are the same one. */
export const isSame = (a: TraceError, b: TraceError | undefined) => a.code === b?.code && a.message === b.message;

/** Returns the step of a pipeline that contains a span, the innermost one; undefined = there is none. */
export function stepOf(tree: Tree, { id }: Span): Span | undefined {
  let node = tree.byId.get(id)?.parent;
  while (node && node.span.kind !== "step") node = node.parent;
  return node?.span;
}

/** Returns the spans that are attempted again now. */
export const retrying = (spans: readonly Span[]): Span[] => spans.filter(({ status, retry }) => status === "running" && retry !== undefined);

/** Returns the interrupts that wait for a decision. */
export const openInterrupts = (spans: readonly Span[]): Span[] =>
  spans.filter(({ kind, status }) => kind === "interrupt" && (status === "waiting" || status === "running"));

/** Returns the sum of the tokens of several models. */
export function totalOf(usage: Trace["usage"] = []): { input: number; output: number; total: number } {
  const total = { input: 0, output: 0, total: 0 };
  for (const { inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens } of usage as NonNullable<Span["usage"]>[]) {
    total.input += inputTokens;
    total.output += outputTokens;
    total.total += totalTokens;
  }
  return total;
}

// A cursor ends with the projection of its reader; the part before that is the position in the log.
const position = (cursor: string) => cursor.split("-", 1)[0]!;

/** Whether a cursor is that of an event between two cursors. */
export const isBetween = (cursor: string, first: string, last: string) => position(cursor) >= position(first) && position(cursor) <= position(last);
