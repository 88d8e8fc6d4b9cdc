/** Where the cursor is in a YAML text. */
export interface YAMLPlace {
  /** The keys from the root to the map or list around the cursor; `-` stands for an entry of a list. */
  path: string[];
  /** The key before the cursor, if the cursor is at its value. */
  key?: string;
  /** What is typed of the key or value, and where it begins in the text. */
  typed: string;
  from: number;
}

interface Level {
  column: number;
  segment: string;
}

const keyAtStart = /^([A-Za-z_][\w-]*)\s*:(?=\s|$)/;

/** Returns the place of a position in a text; null = it is in a comment or a block of text. */
export function placeAt(text: string, at: number): YAMLPlace | null {
  const lineStart = text.lastIndexOf("\n", at - 1) + 1;
  const line = text.slice(lineStart, at);
  const { column, segments, rest } = markersOf(line);
  const outer = levelsAbove(text.slice(0, lineStart), segments[0]?.column ?? column, segments.length > 0);
  if (outer === null) return null;
  const path = [...outer, ...segments.map(({ segment }) => segment)];
  return placeInLine(rest, path, at);
}

/** Splits the beginning of a line into its list markers and what follows them. */
function markersOf(line: string): { column: number; segments: Level[]; rest: string } {
  const segments: Level[] = [];
  let column = line.length - line.trimStart().length;
  while (/^-(\s|$)/.test(line.slice(column))) {
    segments.push({ column, segment: "-" });
    column += /^-\s*/.exec(line.slice(column))![0].length;
  }
  return { column, segments, rest: line.slice(column) };
}

/** Returns the keys of the block around a column, from the lines before it; null = the block is a text. */
function levelsAbove(before: string, column: number, isEntry: boolean): string[] | null {
  const path: string[] = [];
  let limit = column;
  let takesEqual = isEntry; // the entries of a list may have the column of its key
  for (const line of before.split("\n").reverse()) {
    const content = line.trim();
    if (content === "" || content.startsWith("#")) continue;
    const { column: keyColumn, segments, rest } = markersOf(line);
    const key = keyAtStart.exec(rest);
    if (key && (keyColumn < limit || (takesEqual && keyColumn === limit && segments.length === 0))) {
      const value = rest.slice(key[0].length).trim();
      if (/^[|>]/.test(value)) return null;
      if (value === "" || value.startsWith("#")) {
        path.unshift(key[1]!);
        limit = keyColumn;
        takesEqual = false;
      }
    }
    for (const marker of segments.toReversed()) {
      if (marker.column >= limit) continue;
      path.unshift("-");
      limit = marker.column;
      takesEqual = true;
    }
    if (limit === 0 && !takesEqual) break;
  }
  return path;
}

/** Returns the place in the rest of a line, which may open maps and lists in flow style. */
function placeInLine(rest: string, path: string[], at: number): YAMLPlace | null {
  const open: { bracket: string; depth: number }[] = [];
  let keys = [...path];
  let key: string | undefined;
  let start = 0;
  let quote = "";
  for (let i = 0; i < rest.length; i++) {
    const character = rest[i]!;
    if (quote !== "") {
      if (character === quote) quote = "";
    } else if ((character === '"' || character === "'") && rest.slice(start, i).trim() === "") {
      quote = character;
    } else if (character === "#" && (i === 0 || rest[i - 1] === " ")) {
      return null;
    } else if (character === ":" && (rest[i + 1] === " " || i + 1 === rest.length) && key === undefined) {
      key = rest.slice(start, i).trim();
      start = i + 1;
    } else if (character === "{" || character === "[") {
      if (rest.slice(start, i).trim() !== "") continue; // in a plain text
      open.push({ bracket: character, depth: keys.length });
      keys = [...keys, ...(key === undefined ? [] : [key]), ...(character === "[" ? ["-"] : [])];
      key = undefined;
      start = i + 1;
    } else if ((character === "}" || character === "]") && open.length > 0) {
      keys = keys.slice(0, open.pop()!.depth);
      key = "";
      start = i + 1;
    } else if (character === "," && open.length > 0) {
      key = undefined;
      start = i + 1;
    }
  }
  const typed = rest.slice(start).trimStart();
  return { path: keys, ...(key !== undefined && { key }), typed, from: at - typed.length };
}
