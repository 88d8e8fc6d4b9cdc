import { type ReactNode, useId } from "react";
import { FieldError, Input, Label, Text, TextArea, TextField, type TextFieldProps } from "react-aria-components";
import styles from "./field.module.css";

/** Properties of a Field. */
export interface FieldProps extends Omit<TextFieldProps, "className" | "style" | "children"> {
  label: string;
  /** The label is for screen readers only: the place of the field tells its meaning. */
  isLabelHidden?: boolean;
  placeholder?: string;
  /** A text below the field. */
  hint?: ReactNode;
  /** Why the value is invalid. */
  error?: string | undefined;
  /** Values that the field suggests. Others can be typed. */
  options?: readonly string[];
  /** The number of rows of a text of several lines. */
  rows?: number;
}

/** A text field with its label. */
export function Field({ label, isLabelHidden = false, placeholder, hint, error, rows, options, ...props }: FieldProps) {
  const list = useId();
  return (
    <TextField {...props} isInvalid={error !== undefined} className={styles.field!}>
      <Label className={isLabelHidden ? "visually-hidden" : styles.label!}>{label}</Label>
      {rows === undefined ? <Input className={styles.input!} placeholder={placeholder} {...(options && { list })} /> : <TextArea className={styles.input!} placeholder={placeholder} rows={rows} />}
      {hint !== undefined && <Text slot="description" className={styles.hint!}>{hint}</Text>}
      {options && <datalist id={list}>{options.map((option) => <option key={option} value={option} />)}</datalist>}
      <FieldError className={styles.error!}>{error}</FieldError>
    </TextField>
  );
}
