import { announce } from "../../components/announcer";
import { Button, IconButton } from "../../components/button";
import { CloseIcon, CopyIcon } from "../../components/icons";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import { apiURL, settings } from "../../settings";
import { eventsPath, type LoggedEvent } from "./run_events";
import styles from "./span_detail.module.css";
import type { Trace } from "./trace";

/** Properties of an EventDetail. */
export interface EventDetailProps {
  trace: Trace;
  logged: LoggedEvent;
  /** The cursor of the event before; undefined = the event is the first. */
  previous: string | undefined;
  onClose: () => void;
}

/** An event as JSON, and how to read it with curl. */
export function EventDetail({ trace, logged: { cursor, event, count = 1 }, previous, onClose }: EventDetailProps) {
  const copy = async (text: string, what: string) => {
    await navigator.clipboard.writeText(text);
    announce(`${what} copied`);
  };
  return (
    <aside className={styles.panel} aria-label="Event" onKeyDown={({ key }) => key === "Escape" && onClose()}>
      <header className={styles.header}>
        <h2 className="truncate mono">{safeText(event.type)}</h2>
        <IconButton label="Close the event" onPress={onClose}><CloseIcon /></IconButton>
      </header>
      <div className={styles.body} tabIndex={0} role="region" aria-label="Content of the event">
        <dl className={styles.facts}>
          <div>
            <dt>Cursor</dt>
            <dd><code>{cursor}</code></dd>
          </div>
          {count > 1 && (
            <div>
              <dt>Parts</dt>
              <dd>{count.toLocaleString()} events, of which this is the first cursor</dd>
            </div>
          )}
        </dl>
        <div className={styles.copies}>
          <Button onPress={() => void copy(JSON.stringify(event, null, 2), "Event")}><CopyIcon />Copy JSON</Button>
          <Button onPress={() => void copy(curlOf(trace, count, previous), "Command")}><CopyIcon />Copy as curl</Button>
        </div>
        <JSONView value={event} depth={4} />
      </div>
    </aside>
  );
}

const mostEvents = 500; // of a page of the API

// The token stays in this page: the command reads its own from the environment.
function curlOf({ threadId, runId }: Trace, count: number, after: string | undefined): string {
  const query = new URLSearchParams({ limit: `${Math.min(count, mostEvents)}`, ...(after !== undefined && { after }) });
  const url = `${apiURL}${eventsPath(threadId, runId)}?${query}`.replaceAll("'", "%27");
  const token = settings.auth === "none" ? "" : ` -H "Authorization: Bearer $PERDURE_TOKEN"`;
  return `curl '${url}' -H 'Accept: application/json'${token}`;
}
