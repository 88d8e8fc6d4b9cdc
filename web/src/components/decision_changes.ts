/** A member that differs between two values. */
export interface Change {
  /** The names of the members that lead to it. */
  path: readonly string[];
  /** Absent if the member was added. */
  before?: unknown;
  /** Absent if the member was removed. */
  after?: unknown;
}

/** Returns the members that differ between two JSON values, in the order of the first value. The order of members does not matter. */
export function changesOf(before: unknown, after: unknown, path: readonly string[] = []): Change[] {
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
