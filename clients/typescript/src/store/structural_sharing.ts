type Plain = Record<string, unknown>;

const isPlain = (value: unknown): value is Plain => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Returns a copy of JSON data that reuses every part of the previous copy that is equal. Equal data returns the previous copy
 * itself. The copy shares nothing with `next`, which its owner may change.
 */
export function share<T>(previous: unknown, next: T): T {
  if (Array.isArray(next)) {
    const before = Array.isArray(previous) ? previous : [];
    const copy = next.map((value, i) => share(before[i], value));
    const isEqual = before === previous && before.length === copy.length && copy.every((value, i) => value === before[i]);
    return (isEqual ? previous : copy) as T;
  }
  if (!isPlain(next)) return next;
  const before = isPlain(previous) ? previous : {};
  const copy: Plain = {};
  let isEqual = before === previous;
  let size = 0;
  for (const [name, value] of Object.entries(next)) {
    if (value === undefined) continue;
    copy[name] = share(before[name], value);
    if (copy[name] !== before[name]) isEqual = false;
    size++;
  }
  return (isEqual && Object.keys(before).length === size ? previous : copy) as T;
}

/** Like share, for a list whose items have IDs and may move. */
export function shareByID<T extends { id: string }>(previous: readonly T[], next: readonly T[]): readonly T[] {
  const byID = new Map(previous.map((item) => [item.id, item]));
  const copy = next.map((item) => share(byID.get(item.id), item));
  return copy.length === previous.length && copy.every((item, i) => item === previous[i]) ? previous : copy;
}
