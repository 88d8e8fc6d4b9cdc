import type { ContentPart } from "@perdure/client";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, memo, type RefObject, useEffect, useRef, useState } from "react";
import { Button, IconButton } from "../../components/button";
import { Choice } from "../../components/choice";
import { AttachIcon, CloseIcon, SendIcon, StopIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useClient } from "../../session";
import { type Attachment, uploadFiles } from "./attachments";
import { ClientTools } from "./client_tool_list";
import styles from "./composer.module.css";
import { sizeText } from "./content_view";
import { useObjectURL } from "./stored_file";

/** What happens to a message while a run is active. */
export type OnBusy = "steer" | "enqueue" | "interrupt";

/** Properties of a Composer. */
export interface ComposerProps {
  /** Under which name this tab keeps the text that is not sent yet. */
  draft: string;
  placeholder: string;
  isRunning: boolean;
  agent: string;
  /** The names of the client tools that the agent takes, or undefined if it takes none. */
  clientTools: readonly string[] | undefined;
  onSend: (content: string | ContentPart[], onBusy: OnBusy) => Promise<unknown>;
  onStop: () => Promise<unknown>;
  field: RefObject<HTMLTextAreaElement | null>;
}

// Files that are being uploaded, each with the bytes that the server has.
type Uploads = ReadonlyMap<File, number>;

const busyOptions = [
  { id: "steer", label: "Add to the active run" },
  { id: "enqueue", label: "Send after the run" },
  { id: "interrupt", label: "Stop the run, then send" },
];

/** Writes a message. Enter sends it, Shift+Enter begins a line, Escape leaves the field. */
export const Composer = memo(function Composer({ draft, placeholder, isRunning, agent, clientTools, onSend, onStop, field }: ComposerProps) {
  const [text, setText] = useDraft(draft);
  const [files, setFiles] = useState<readonly Attachment[]>([]);
  const [onBusy, setOnBusy] = useState<OnBusy>("steer");
  const [error, setError] = useState<unknown>();
  const [uploads, setUploads] = useState<Uploads>(new Map());
  const uploading = useRef<AbortController>(undefined); // aborts the active uploads
  const client = useClient();
  const stopUploads = () => {
    uploading.current?.abort();
    uploading.current = undefined;
  };
  useEffect(() => stopUploads, []);
  const isEmpty = text.trim() === "" && files.length === 0;
  const attach = async (added: readonly File[]) => {
    const { signal } = (uploading.current ??= new AbortController());
    setError(undefined);
    setUploads((current) => new Map([...current, ...added.map((file) => [file, 0] as const)]));
    const progress = (file: File, sent: number) => setUploads((current) => (current.has(file) ? new Map([...current, [file, sent]]) : current));
    try {
      const uploaded = await uploadFiles(client, added, signal, progress);
      setFiles((current) => [...current, ...uploaded]);
    } catch (reason) {
      if (!signal.aborted) setError(reason);
    } finally {
      setUploads((current) => new Map([...current].filter(([file]) => !added.includes(file))));
    }
  };
  const remove = (id: string) => setFiles(files.filter((file) => file.id !== id));
  const send = async () => {
    if (isEmpty || uploads.size > 0) return;
    const parts = files.map(({ part }) => part);
    const content = text.trim();
    setText("");
    setFiles([]);
    setError(undefined);
    try {
      await onSend(parts.length === 0 ? content : content === "" ? parts : [...parts, { type: "text", text: content }], onBusy);
    } catch (reason) {
      setError(reason);
      // What was entered meanwhile stays.
      if (field.current?.value.trim() === "") setText(text);
      setFiles((current) => (current.length === 0 ? files : current));
    }
  };
  const stop = () => void onStop().catch(setError);
  // Without the focus in the field, the keys of shortcuts have their effect.
  const press = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") event.currentTarget.blur();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void send();
  };
  const transfer = useTransfer(attach);
  return (
    <form className={styles.composer} aria-label="New message" onSubmit={(event) => { event.preventDefault(); void send(); }} {...transfer.target}>
      {error !== undefined && <Problem error={error} />}
      <div className={styles.box} data-dropping={transfer.isOver || undefined}>
        <Files files={files} uploads={uploads} onRemove={remove} onStop={() => { stopUploads(); field.current?.focus(); }} />
        <textarea ref={field} aria-label="Message" className={styles.field} placeholder={placeholder} rows={1} value={text} onChange={(event) => setText(event.target.value)}
          onPaste={transfer.paste} onKeyDown={press} />
        <div className={styles.tools}>
          <FileButton onChoose={attach} />
          {clientTools && <ClientTools agent={agent} names={clientTools} onLostFocus={() => field.current?.focus()} />}
          <span className={styles.end}>
            {isRunning && <Choice label="While the run is active" isLabelHidden options={busyOptions} value={onBusy} onChange={(id) => setOnBusy(id as OnBusy)} />}
            {isRunning && <Button aria-label="Stop the run" onPress={stop}><StopIcon /></Button>}
            <Button type="submit" kind="primary" aria-label="Send" isDisabled={isEmpty || uploads.size > 0}><SendIcon /></Button>
          </span>
        </div>
      </div>
    </form>
  );
});

// The text is stored with each change, so that a reload keeps it, and a message that is sent leaves nothing.
function useDraft(name: string) {
  const key = `perdure.message.${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const change = (next: string) => {
    if (next === "") sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, next);
    setText(next);
  };
  return [text, change] as const;
}

// Takes files that are pasted or dropped.
function useTransfer(attach: (files: readonly File[]) => unknown) {
  const [isOver, setOver] = useState(false);
  const over = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  const drop = (event: DragEvent) => {
    setOver(false);
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    void attach([...event.dataTransfer.files]);
  };
  const paste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void attach([...event.clipboardData.files]);
  };
  return { isOver, paste, target: { onDragOver: over, onDragLeave: () => setOver(false), onDrop: drop } };
}

function Files({ files, uploads, onRemove, onStop }: { files: readonly Attachment[]; uploads: Uploads; onRemove: (id: string) => void; onStop: () => void }) {
  if (files.length + uploads.size === 0) return null;
  return (
    <ul className={styles.chips} aria-label="Attached files">
      {files.map(({ id, name, size, image }) => (
        <li key={id} className={styles.chip}>
          {image && <Preview image={image} />}
          <span className="truncate">{safeText(name)}</span>
          <span className="muted">{sizeText(size)}</span>
          <button type="button" aria-label={`Remove ${safeText(name)}`} onClick={() => onRemove(id)}><CloseIcon /></button>
        </li>
      ))}
      {uploads.size > 0 && <Uploading uploads={uploads} onStop={onStop} />}
    </ul>
  );
}

function Preview({ image }: { image: File }) {
  const address = useObjectURL(image);
  return address !== undefined && <img src={address} alt="" />;
}

// The bar appears with the first bytes that the server has, and so for large files only.
function Uploading({ uploads, onStop }: { uploads: Uploads; onStop: () => void }) {
  const total = [...uploads.keys()].reduce((sum, { size }) => sum + size, 0);
  const sent = [...uploads.values()].reduce((sum, bytes) => sum + bytes, 0);
  return (
    <li className={styles.chip}>
      <span role="status">Uploading…</span>
      {sent > 0 && <progress value={sent} max={total} aria-label="Uploaded" />}
      {sent > 0 && <span className="muted">{sizeText(sent)} of {sizeText(total)}</span>}
      <button type="button" aria-label={uploads.size === 1 ? "Stop the upload" : "Stop the uploads"} onClick={onStop}><CloseIcon /></button>
    </li>
  );
}

function FileButton({ onChoose }: { onChoose: (files: readonly File[]) => unknown }) {
  const input = useRef<HTMLInputElement>(null);
  const change = () => {
    void onChoose([...(input.current?.files ?? [])]);
    if (input.current) input.current.value = ""; // the same file may be chosen again
  };
  return (
    <>
      <input ref={input} type="file" multiple hidden aria-label="Files" onChange={change} />
      <IconButton label="Attach files" onPress={() => input.current?.click()}><AttachIcon /></IconButton>
    </>
  );
}
