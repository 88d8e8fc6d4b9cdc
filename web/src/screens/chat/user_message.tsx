import { type ContentPart, textOf } from "@perdure/client";
import { type KeyboardEvent, useState } from "react";
import { Button, IconButton } from "../../components/button";
import { EditIcon } from "../../components/icons";
import { Medium } from "./content_view";
import { useConversation, useEditing } from "./conversation_context";
import { CopyButton } from "./copy_button";
import { elementID } from "./element_id";
import { LongText } from "./long_text";
import { PendingNote } from "./pending_note";
import type { UserMessage } from "./transcript";
import styles from "./user_message.module.css";

const mediaOf = ({ content }: UserMessage) => (typeof content === "string" ? [] : content.filter((part) => part.type !== "text"));

/** A message of a user. */
export function UserMessageView({ message }: { message: UserMessage }) {
  const text = textOf(message);
  const pending = useConversation().pending.get(message.id);
  const edit = useEditing();
  return (
    <div className={styles.message} data-pending={pending?.kind}>
      <div className={styles.bubble}>
        {mediaOf(message).map((part, i) => <Medium key={i} part={part} />)}
        {text !== "" && <LongText text={text} isMono={false} />}
      </div>
      <span className={styles.tools}>
        {edit && !pending && <IconButton label={editLabel} onPress={() => edit(message.id)}><EditIcon /></IconButton>}
        <CopyButton label="Copy the message" text={text} />
      </span>
      {pending && <PendingNote pending={pending} />}
    </div>
  );
}

const editLabel = "Edit the message";

/** Gives the focus to the button that edits a message. Call it when the editor has closed. */
export function focusEditButton(messageId: string): void {
  document.getElementById(elementID(messageId))?.querySelector<HTMLElement>(`[aria-label="${editLabel}"]`)?.focus();
}

/** Properties of a MessageEditor. */
export interface MessageEditorProps {
  message: UserMessage;
  isPending: boolean;
  onCancel: () => void;
  /** Replaces the message, or sends it in a fork of the thread. */
  onSave: (content: string | ContentPart[], isFork: boolean) => void;
}

/** Edits the text of a message. Its media stay. */
export function MessageEditor({ message, isPending, onCancel, onSave }: MessageEditorProps) {
  const [text, setText] = useState(textOf(message));
  const media = mediaOf(message);
  const save = (isFork: boolean) => {
    const content = text.trim();
    if (content !== "" && !isPending) onSave(media.length === 0 ? content : [...media, { type: "text", text: content }], isFork);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === "Escape") onCancel();
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      save(false);
    }
  };
  const isDisabled = isPending || text.trim() === "";
  return (
    <div className={styles.editor}>
      {media.map((part, i) => <Medium key={i} part={part} />)}
      <textarea ref={focusEnd} aria-label="Edited message" className={styles.field} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={press} rows={2} />
      <p className={styles.hint}>“Send again” replaces this message and all that follows it. A fork is a new thread, and this one stays as it is.</p>
      <div className={styles.actions}>
        <Button kind="quiet" onPress={onCancel}>Cancel</Button>
        <Button isDisabled={isDisabled} onPress={() => save(true)}>Send in a fork</Button>
        <Button kind="primary" isDisabled={isDisabled} onPress={() => save(false)}>Send again</Button>
      </div>
    </div>
  );
}

function focusEnd(field: HTMLTextAreaElement | null): void {
  if (!field || document.activeElement === field) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}
