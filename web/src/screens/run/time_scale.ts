import { durationText } from "../../components/time";
import { isWait, type TreeNode, type Tree } from "./trace";

/** A part of the time axis. Positions are fractions of the width. */
export interface Section {
  from: number;
  to: number;
  start: number;
  end: number;
  /** Nothing is done in this time, and the axis is compressed. */
  isGap: boolean;
}

/** The time axis of a run: linear, except for long times in which the run only waits. */
export interface TimeScale {
  sections: Section[];
  ticks: { at: number; label: string }[];
  /** Returns the position of a time in milliseconds, as a fraction of the width. */
  positionOf: (time: number) => number;
}

type Interval = [from: number, to: number];

/** How the axis shows the time in which a run only waits: compressed if it is long, or cut out. */
export type WaitDisplay = "compressed" | "hidden";

const gapWidth = { compressed: 0.05, hidden: 0.006 };

/** Returns the axis of a trace. now is the end of spans that have none. */
export function timeScale(tree: Tree, now: number, waits: WaitDisplay = "compressed"): TimeScale {
  const nodes = [...tree.byId.values()];
  const start = Math.min(...nodes.map(({ span }) => Date.parse(span.startedAt)));
  const end = Math.max(start + 1, ...nodes.map((node) => endOf(node, now)));
  const sections = place(sectionsOf(start, end, union(nodes.flatMap((node) => workOf(node, now))), waits), waits);
  return { sections, ticks: ticksOf(sections, start), positionOf: (time) => positionIn(sections, time) };
}

const endOf = ({ span }: TreeNode, now: number) => (span.endedAt === undefined ? now : Date.parse(span.endedAt));

// The times in which a span works by itself: those of its attempts, or all of its time, without its waits and children.
function workOf(node: TreeNode, now: number): Interval[] {
  const { span, children } = node;
  if (isWait(span) || (children.length > 0 && span.kind !== "tool") || span.kind === "turn" || span.kind === "run") return [];
  const until = endOf(node, now);
  const all: Interval[] = span.attempts
    ? span.attempts.map(({ startedAt, endedAt }) => [Date.parse(startedAt), endedAt === undefined ? until : Date.parse(endedAt)])
    : [[Date.parse(span.startedAt), until]];
  const waits = children.filter((child) => isWait(child.span)).map((child): Interval => [Date.parse(child.span.startedAt), endOf(child, now)]);
  return waits.reduce((left, wait) => left.flatMap((part) => without(part, wait)), all);
}

function without([from, to]: Interval, [start, end]: Interval): Interval[] {
  if (end <= from || start >= to) return [[from, to]];
  return ([[from, start], [end, to]] as Interval[]).filter(([a, b]) => b > a);
}

function union(intervals: Interval[]): Interval[] {
  const merged: Interval[] = [];
  for (const [from, to] of intervals.sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

function sectionsOf(start: number, end: number, work: Interval[], waits: WaitDisplay): Section[] {
  const worked = work.reduce((sum, [from, to]) => sum + to - from, 0);
  // A gap of half of the work is compressed, since it would take a third of the width.
  const longest = waits === "hidden" ? 250 : Math.max(1_000, worked / 2);
  const sections: Section[] = [];
  const add = (from: number, to: number, isGap: boolean) => {
    if (to <= from) return;
    const last = sections.at(-1);
    if (last && last.isGap === isGap) last.to = to;
    else sections.push({ from, to, start: 0, end: 0, isGap });
  };
  let at = start;
  for (const [from, to] of [...work, [end, end] as Interval]) {
    add(at, from, worked > 0 && from - at > longest);
    add(Math.max(at, from), to, false);
    at = Math.max(at, to);
  }
  return sections;
}

function place(sections: Section[], waits: WaitDisplay): Section[] {
  const gaps = sections.filter(({ isGap }) => isGap).length;
  const width = Math.min(gapWidth[waits], 0.4 / Math.max(1, gaps));
  const linear = sections.reduce((sum, { isGap, from, to }) => sum + (isGap ? 0 : to - from), 0);
  let at = 0;
  for (const section of sections) {
    section.start = at;
    at += section.isGap ? width : ((section.to - section.from) / Math.max(1, linear)) * (1 - gaps * width);
    section.end = at;
  }
  return sections;
}

function positionIn(sections: Section[], time: number): number {
  for (const { from, to, start, end } of sections) {
    if (time <= to) return start + (Math.max(0, time - from) / (to - from)) * (end - start);
  }
  return 1;
}

// The width of a digit in the labels, and the space around a label, in pixels.
const digitWidth = 7;
const labelSpace = 12;

/** Returns the ticks with space for their labels on an axis of a width in pixels. An earlier tick keeps its label. */
export function labeledTicks(ticks: TimeScale["ticks"], width: number): TimeScale["ticks"] {
  let free = 0;
  return ticks.filter(({ at, label }) => {
    const left = at * width;
    const right = left + label.length * digitWidth + labelSpace;
    if (left < free || right > width + labelSpace) return false;
    free = right;
    return true;
  });
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 144e5, 432e5, 864e5];

// The ticks of each linear section count from its beginning, which is a tick itself.
function ticksOf(sections: Section[], start: number): TimeScale["ticks"] {
  const linear = sections.filter(({ isGap }) => !isGap);
  const length = linear.reduce((sum, { from, to }) => sum + to - from, 0);
  const width = linear.reduce((sum, section) => sum + section.end - section.start, 0);
  const step = steps.find((candidate) => (candidate / Math.max(1, length)) * width >= 0.16) ?? length;
  return linear.flatMap(({ from, to, start: left, end: right }) => {
    const ticks = [{ at: left, label: from === start ? "0 s" : durationText(from - start) }];
    for (let time = from + step; time < to - step / 3; time += step) {
      const label = from === start ? durationText(time - start) : `+${durationText(time - from)}`;
      ticks.push({ at: left + ((time - from) / (to - from)) * (right - left), label });
    }
    return ticks;
  });
}
