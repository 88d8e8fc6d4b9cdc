import { useState } from "react";
import { Field } from "./field";
import { Unparsed } from "./json_schema";
import styles from "./json_field.module.css";

/** Properties of a JSONField. */
export interface JSONFieldProps {
  label: string;
  isLabelHidden?: boolean;
  /** The value at first. The field keeps its text from then on. */
  initial: unknown;
  /** Called with each change: with the value, with undefined for an empty text, or with an Unparsed. */
  onChange: (value: unknown) => void;
  hint?: string;
  /** Why the value is invalid, if its text is JSON. */
  error?: string | undefined;
  rows?: number;
}

/** A field for JSON. It says where a text stops being JSON. */
export function JSONField({ label, isLabelHidden = false, initial, onChange, hint, error, rows }: JSONFieldProps) {
  const [text, setText] = useState(() => (initial === undefined ? "" : JSON.stringify(initial, null, 2)));
  const [mistake, setMistake] = useState<string>();
  const change = (next: string) => {
    const value = parseJSON(next);
    setText(next);
    setMistake(value instanceof Unparsed ? value.reason : undefined);
    onChange(value);
  };
  const lines = rows ?? Math.min(18, Math.max(3, text.split("\n").length));
  return (
    <div className={styles.field}>
      <Field label={label} isLabelHidden={isLabelHidden} value={text} onChange={change} rows={lines} error={mistake ?? error} spellCheck="false" autoComplete="off" {...(hint !== undefined && { hint })} />
    </div>
  );
}

/** Returns the value of a JSON text, undefined for an empty one, or an Unparsed that says what is wrong. */
export function parseJSON(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    return new Unparsed(text, `This is not JSON: ${(error as Error).message}`);
  }
}
