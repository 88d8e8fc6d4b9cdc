/** A member that differs between two values. */
export interface Change {
  /** The names of the members that lead to it. */
  path: readonly string[];
  /** Absent if the member was added. */
  before?: unknown;
  /** Absent if the member was removed. */
  after?: unknown;
}

/**
 * Returns the members that differ between two JSON values, in the order of the first value. The order of members does not
 * matter. A list of scalars is one member, with the items that it has lost and gained.
 */
export function changesOf(before: unknown, after: unknown, path: readonly string[] = []): Change[] {
  if (isList(before) && isList(after)) return listChanges(before, after, path);
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    return before === after ? [] : [{ path, before, after }];
  }
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => {
    const at = [...path, name];
    if (!Object.hasOwn(after, name)) return [{ path: at, before: before[name] }];
    if (!Object.hasOwn(before, name)) return [{ path: at, after: after[name] }];
    return changesOf(before[name], after[name], at);
  });
}

const isContainer = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const isList = (value: unknown): value is unknown[] => Array.isArray(value) && !value.some(isContainer);

// The items that a list of scalars has lost and gained, or both lists if only the order differs.
function listChanges(before: unknown[], after: unknown[], path: readonly string[]): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const lost = without(before, after);
  const gained = without(after, before);
  if (lost.length + gained.length === 0) return [{ path, before, after }];
  return [{ path, ...(lost.length > 0 && { before: lost }), ...(gained.length > 0 && { after: gained }) }];
}

function without(items: unknown[], others: unknown[]): unknown[] {
  const rest = [...others];
  return items.filter((item) => {
    const at = rest.indexOf(item);
    if (at >= 0) rest.splice(at, 1);
    return at < 0;
  });
}
