import type { ContentPart } from "@perdure/client";
import { useMemo, useState } from "react";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import { LongText } from "./long_text";
import { idOfFile, shownImages, StoredFile } from "./stored_file";
import styles from "./content_view.module.css";
import { ValueTable, tableOf } from "./value_table";

type Content = string | readonly ContentPart[];

/** The result of a tool: a table or a tree if it is JSON, images and files if it has parts, or text. */
export function ContentView({ content }: { content: Content }) {
  if (typeof content === "string") return <TextOrJSON text={content} />;
  return (
    <div className={styles.parts}>
      {content.map((part, i) => (part.type === "text" ? <TextOrJSON key={i} text={part.text} /> : <Medium key={i} part={part} />))}
    </div>
  );
}

/** The value of a text that is a JSON object or list, or undefined. */
export function structureIn(text: string): object | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

function TextOrJSON({ text }: { text: string }) {
  const value = useMemo(() => structureIn(text), [text]);
  if (value === undefined) return <LongText text={text} />;
  return <Structure value={value} text={text} />;
}

function Structure({ value, text }: { value: object; text: string }) {
  const table = useMemo(() => tableOf(value), [value]);
  const views = table ? ["Table", "Tree", "Text"] : ["Tree", "Text"];
  const [view, setView] = useState(views[0]);
  return (
    <div className={styles.structure}>
      <div className={styles.views} role="group" aria-label="View">
        {views.map((name) => (
          <button key={name} type="button" className={styles.view} aria-pressed={view === name} onClick={() => setView(name)}>{name}</button>
        ))}
      </div>
      {view === "Table" && table && <ValueTable {...table} />}
      {view === "Tree" && <JSONView value={value} depth={2} />}
      {view === "Text" && <LongText text={text} />}
    </div>
  );
}

/** An image or a file of a message, or the name of another medium. Nothing is loaded from the address of another server. */
export function Medium({ part }: { part: Exclude<ContentPart, { type: "text" }> }) {
  const { source, type } = part;
  const name = nameOf(part);
  const isData = source?.type === "data";
  const fileID = source?.type === "url" ? idOfFile(source.value) : undefined;
  if (fileID !== undefined) return <StoredFile id={fileID} name={name ?? type} mediaType={source?.mimeType ?? type} />;
  if (isData && type === "image" && shownImages.test(source.mimeType)) {
    return <img className={styles.image} src={`data:${source.mimeType};base64,${source.value}`} alt={name ?? "Image of the message"} />;
  }
  const size = isData ? ` · ${sizeText(Math.floor((source.value.length * 3) / 4))}` : "";
  return (
    <p className={styles.medium}>
      <strong>{safeText(name ?? type)}</strong>
      <span className="muted">{safeText(source?.mimeType ?? type)}{size}</span>
      {!isData && source !== undefined && <code>{safeText(source.value)}</code>}
    </p>
  );
}

const nameOf = ({ metadata }: { metadata?: unknown }): string | undefined => {
  const { filename } = (metadata ?? {}) as { filename?: unknown };
  return typeof filename === "string" ? filename : undefined;
};

/** Returns a size in bytes as a text, such as 1.4 MB. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}
