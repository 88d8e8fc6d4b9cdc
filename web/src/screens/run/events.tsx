import { useDeferredValue, useMemo, useRef, useState } from "react";
import { IconButton } from "../../components/button";
import { Choice } from "../../components/choice";
import { Field } from "../../components/field";
import { CloseIcon } from "../../components/icons";
import { Empty, Loading } from "../../components/page";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useSearchParam } from "../../components/search_param";
import { useShortcuts } from "../../components/shortcuts";
import { Toggle } from "../../components/toggle";
import { EventDetail } from "./event_detail";
import { EventList } from "./event_list";
import styles from "./events.module.css";
import { mergeParts } from "./merged_events";
import { type LoggedEvent, useRunEvents } from "./run_events";
import { isBetween, type Span, type Trace, type Tree } from "./trace";

/** The events of a run as clients receive them, with a filter. */
export function Events({ trace, tree }: { trace: Trace; tree: Tree }) {
  const { events, isLoading, error, retry } = useRunEvents(trace.threadId, trace.runId, trace.status === "running");
  const [type, setType] = useSearchParam("type");
  const [text, setText] = useSearchParam("text");
  const [inSpan, setInSpan] = useSearchParam("in");
  const [selected, setSelected] = useSearchParam("event");
  const [typed, setTyped] = useState(text);
  const wanted = useDeferredValue(typed.trim().toLowerCase());
  const span = tree.byId.get(inSpan)?.span;
  const [each, setEach] = useSearchParam("each");
  const listed = useMemo(() => (each === "" ? mergeParts(events) : events), [events, each]);
  const shown = useMemo(() => filtered(listed, { type, text: wanted, span }), [listed, type, wanted, span]);
  const types = useMemo(() => [...new Set(events.map(({ event }) => event.type))].sort(), [events]);
  const toolbar = useRef<HTMLDivElement>(null);
  const index = events.findIndex(({ cursor }) => cursor === selected);
  const opened = listed.find(({ cursor }) => cursor === selected);
  const total = shown === listed ? events.length : shown.reduce((sum, { count = 1 }) => sum + count, 0);
  useShortcuts("Events", [{ keys: "/", label: "Search the events", run: () => toolbar.current?.querySelector("input")?.focus() }]);
  return (
    <div className={styles.page}>
      <div className={styles.list}>
        <div className={styles.toolbar} ref={toolbar}>
          <Field label="Search the events" isLabelHidden placeholder="Search the events" value={typed} onChange={setTyped} onBlur={() => setText(typed.trim())} />
          <Choice label="Type" isLabelHidden options={[{ id: "", label: "All types" }, ...types.map((id) => ({ id, label: id }))]} value={type} onChange={setType} />
          {span && <SpanFilter span={span} onClear={() => setInSpan("")} />}
          <Toggle isOn={each === ""} onChange={(isOn) => setEach(isOn ? "" : "on")}>Whole texts</Toggle>
          <span className={styles.total} role="status">{totalText(total, events.length, isLoading)}</span>
        </div>
        {error !== undefined && <div className={styles.problem}><Problem error={error} onRetry={retry} /></div>}
        {events.length === 0 && isLoading && <Loading />}
        {events.length > 0 && shown.length === 0 && !isLoading && <Empty title="No event matches"><p>Change the search, or choose all types.</p></Empty>}
        {shown.length > 0 && <EventList events={shown} startedAt={trace.startedAt} selected={selected} onSelect={setSelected} />}
      </div>
      {opened && <EventDetail key={selected} trace={trace} logged={opened} previous={events[index - 1]?.cursor} onClose={() => setSelected("")} />}
    </div>
  );
}

function SpanFilter({ span, onClear }: { span: Span; onClear: () => void }) {
  return (
    <span className={styles.chip}>
      Span: {safeText(span.name)}
      <IconButton label="Show the events of all spans" onPress={onClear}><CloseIcon /></IconButton>
    </span>
  );
}

function filtered(events: readonly LoggedEvent[], { type, text, span }: { type: string; text: string; span: Span | undefined }): readonly LoggedEvent[] {
  const { firstCursor, lastCursor } = span ?? {};
  return events.filter(
    (logged) =>
      (type === "" || logged.event.type === type) &&
      (text === "" || logged.text.includes(text) || logged.cursor.includes(text)) &&
      (firstCursor === undefined || lastCursor === undefined || isBetween(logged.cursor, firstCursor, lastCursor)),
  );
}

function totalText(shown: number, all: number, isLoading: boolean): string {
  if (isLoading) return `Loading … ${all.toLocaleString()} events`;
  return shown === all ? `${all.toLocaleString()} events` : `${shown.toLocaleString()} of ${all.toLocaleString()} events`;
}
