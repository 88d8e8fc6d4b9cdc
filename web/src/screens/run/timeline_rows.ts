import { isWait, type Tree, type TreeNode } from "./trace";

/** Which spans the timeline shows. */
export interface RowFilter {
  /** The spans whose children are hidden, by ID. */
  collapsed: ReadonlySet<string>;
  hidesWaits: boolean;
  /** A text that the name, the agent or the error of a span has, in lower case. The spans that contain it stay. */
  text: string;
}

/** Returns the rows of a tree from top to bottom. */
export function rowsOf(tree: Tree, { collapsed, hidesWaits, text }: RowFilter): TreeNode[] {
  const kept = text === "" ? undefined : matching(tree, text);
  const rows: TreeNode[] = [];
  const add = (node: TreeNode) => {
    if ((hidesWaits && isWait(node.span)) || (kept && !kept.has(node))) return;
    rows.push(node);
    if (kept || !collapsed.has(node.span.id)) node.children.forEach(add);
  };
  tree.roots.forEach(add);
  return rows;
}

// The spans that have the text, and those around them.
function matching(tree: Tree, text: string): Set<TreeNode> {
  const kept = new Set<TreeNode>();
  for (const node of tree.byId.values()) {
    const { name, kind, agent, error, status } = node.span;
    const searched = [name, kind, agent, status, error?.code, error?.message].join(" ").toLowerCase();
    if (!searched.includes(text)) continue;
    for (let at: TreeNode | undefined = node; at && !kept.has(at); at = at.parent) kept.add(at);
  }
  return kept;
}

/** Returns the index of the row to which a key moves in a list of count rows, or undefined if the key does not move. */
export function rowAfter(key: string, count: number, index: number, page: number): number | undefined {
  const last = count - 1;
  switch (key) {
    case "ArrowDown":
      return Math.min(last, index + 1);
    case "ArrowUp":
      return Math.max(0, index - 1);
    case "PageDown":
      return Math.min(last, index + page);
    case "PageUp":
      return Math.max(0, index - page);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return undefined;
  }
}
