import { type FormEvent, type ReactNode, useId, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { Button } from "./button";
import { initialValue, type JSONSchema, mistakesOf, resolveSchema } from "./json_schema";
import { SchemaField } from "./schema_field";
import styles from "./schema_form.module.css";

/** Properties of a SchemaForm. */
export interface SchemaFormProps {
  /** A JSON Schema. Without one, the form has a field for JSON. */
  schema: unknown;
  /** The name of the field, if the schema is not an object of several members. */
  label?: string;
  submitLabel?: string;
  isPending?: boolean;
  /** Called with a value that the form has found no mistake in. */
  onSubmit: (value: unknown) => void;
  /** Further buttons, before the one that submits. */
  children?: ReactNode;
}

/** A form made from a JSON Schema: of texts, numbers, booleans, choices and nested objects, and of JSON for everything else. */
export function SchemaForm({ schema, label = "Answer", submitLabel = "Send", isPending = false, onSubmit, children }: SchemaFormProps) {
  const root = useMemo<JSONSchema>(() => resolveSchema(schema, schema), [schema]);
  const [value, setValue] = useState(() => initialValue(root, schema));
  const [mistakes, setMistakes] = useState<ReadonlyMap<string, string>>(new Map());
  const form = useRef<HTMLFormElement>(null);
  const id = useId();
  const change = (next: unknown) => {
    setValue(next);
    if (mistakes.size > 0) setMistakes(mistakesOf(next, root, schema, true));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = mistakesOf(value, root, schema, true);
    flushSync(() => setMistakes(found)); // marks the invalid fields
    if (found.size === 0) return onSubmit(value);
    form.current?.querySelector<HTMLElement>("[aria-invalid=true], [data-invalid]")?.focus();
  };
  return (
    <form ref={form} id={id} className={styles.form} onSubmit={submit} noValidate>
      <SchemaField schema={root} root={schema} label={root.title ?? label} isRequired value={value} onChange={change} mistakes={mistakes} at="" depth={0} />
      <div className={styles.actions}>
        {children}
        <Button type="submit" kind="primary" isDisabled={isPending}>{submitLabel}</Button>
      </div>
    </form>
  );
}
