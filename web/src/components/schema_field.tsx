import { type ReactNode, useId, useState } from "react";
import { Choice } from "./choice";
import { Field } from "./field";
import { JSONField } from "./json_field";
import { type JSONSchema, kindOf, optionsOf, resolveSchema, type SchemaOption, typeOf, Unparsed } from "./json_schema";
import { safeText } from "./safe_text";
import styles from "./schema_form.module.css";

/** Properties of a SchemaField. */
export interface SchemaFieldProps {
  schema: JSONSchema;
  /** The document of the schema, for its references. */
  root: unknown;
  label: string;
  isRequired: boolean;
  value: unknown;
  onChange: (value: unknown) => void;
  /** What is wrong with the values of the form, by JSON pointer. */
  mistakes: ReadonlyMap<string, string>;
  /** The JSON pointer of the value. */
  at: string;
  depth: number;
}

// As many options are buttons; more are a list that opens.
const mostButtons = 6;

/** The control for a value of a JSON Schema. */
export function SchemaField(props: SchemaFieldProps) {
  switch (kindOf(props.schema, props.root, props.depth)) {
    case "object":
      return <ObjectFields {...props} />;
    case "choice":
      return <ChoiceField {...props} options={optionsOf(props.schema)!} />;
    case "choices":
      return <ChoicesField {...props} options={optionsOf(resolveSchema(props.schema.items, props.root))!} />;
    case "boolean":
      return <BooleanField {...props} />;
    case "number":
      return <NumberField {...props} />;
    case "text":
      return <StringField {...props} />;
    default:
      return <JSONField label={labelOf(props)} initial={props.value} onChange={props.onChange} error={props.mistakes.get(props.at)} {...hintOf(props)} />;
  }
}

const labelOf = ({ label, isRequired }: SchemaFieldProps) => safeText(label) + (isRequired ? "" : " (optional)");

const hintOf = ({ schema }: SchemaFieldProps) => (schema.description === undefined ? {} : { hint: safeText(schema.description) });

function ObjectFields(props: SchemaFieldProps) {
  const { schema, root, value, onChange, mistakes, at, depth } = props;
  const members = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  const fields = Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const resolved = resolveSchema(member, root);
    const change = (next: unknown) => {
      const { [name]: _, ...others } = members;
      onChange(next === undefined ? others : { ...others, [name]: next });
    };
    return (
      <SchemaField key={name} schema={resolved} root={root} label={resolved.title ?? name} isRequired={schema.required?.includes(name) ?? false}
        value={members[name]} onChange={change} mistakes={mistakes} at={`${at}/${name}`} depth={depth + 1} />
    );
  });
  if (depth === 0) return <div className={styles.fields}>{fields}</div>;
  return <Group {...props}><div className={styles.fields}>{fields}</div></Group>;
}

function Group(props: SchemaFieldProps & { children: ReactNode }) {
  const { schema, mistakes, at, children } = props;
  const id = useId();
  const mistake = mistakes.get(at);
  return (
    <fieldset className={styles.group} aria-describedby={mistake === undefined ? undefined : id}>
      <legend className={styles.legend}>{labelOf(props)}</legend>
      {schema.description !== undefined && <p className={styles.hint}>{safeText(schema.description)}</p>}
      {children}
      {mistake !== undefined && <p id={id} className={styles.error}>{mistake}</p>}
    </fieldset>
  );
}

function ChoiceField(props: SchemaFieldProps & { options: SchemaOption[] }) {
  const { options, value, onChange, isRequired, mistakes, at } = props;
  const name = useId();
  const chosen = options.findIndex((option) => option.value === value);
  if (options.length > mostButtons) {
    const listed = options.map(({ label }, i) => ({ id: String(i), label: safeText(label) }));
    const all = isRequired ? listed : [{ id: "-1", label: "No answer" }, ...listed];
    return (
      <div className={styles.fields}>
        <Choice label={labelOf(props)} options={all} value={String(chosen)} onChange={(id) => onChange(options[Number(id)]?.value)} />
        {mistakes.has(at) && <p className={styles.error}>{mistakes.get(at)}</p>}
      </div>
    );
  }
  const shown = isRequired ? options : [...options, { value: undefined, label: "No answer" }];
  return (
    <Group {...props}>
      <div className={styles.options}>
        {shown.map((option) => (
          <label key={option.label} className={styles.option}>
            <input type="radio" name={name} checked={option.value === value} onChange={() => onChange(option.value)} data-invalid={mistakes.has(at) || undefined} />
            {safeText(option.label)}
          </label>
        ))}
      </div>
    </Group>
  );
}

function ChoicesField(props: SchemaFieldProps & { options: SchemaOption[] }) {
  const { options, value, onChange, mistakes, at } = props;
  const chosen = Array.isArray(value) ? (value as unknown[]) : [];
  const toggle = (option: unknown, isOn: boolean) => {
    // In the order of the options, whatever the order of the clicks.
    onChange(options.map((each) => each.value).filter((each) => (each === option ? isOn : chosen.includes(each))));
  };
  return (
    <Group {...props}>
      <div className={styles.options}>
        {options.map((option) => (
          <label key={option.label} className={styles.option}>
            <input type="checkbox" checked={chosen.includes(option.value)} onChange={(event) => toggle(option.value, event.target.checked)} data-invalid={mistakes.has(at) || undefined} />
            {safeText(option.label)}
          </label>
        ))}
      </div>
    </Group>
  );
}

// A boolean has no checkbox: "no" and "no answer" differ.
function BooleanField(props: SchemaFieldProps) {
  return <ChoiceField {...props} options={[{ value: true, label: "Yes" }, { value: false, label: "No" }]} />;
}

function NumberField(props: SchemaFieldProps) {
  const { value, onChange, schema, mistakes, at, isRequired } = props;
  const [text, setText] = useState(typeof value === "number" ? String(value) : "");
  const change = (next: string) => {
    const number = Number(next.replace(",", "."));
    setText(next);
    if (next.trim() === "") onChange(undefined);
    else onChange(Number.isFinite(number) ? number : new Unparsed(next, "A number is needed."));
  };
  return (
    <Field label={labelOf(props)} value={text} onChange={change} inputMode={typeOf(schema) === "integer" ? "numeric" : "decimal"} autoComplete="off"
      isRequired={isRequired} error={mistakes.get(at)} {...hintOf(props)} />
  );
}

const inputTypes: Record<string, string> = { date: "date", time: "time", email: "email", uri: "url" };
const longText = 200;

function StringField(props: SchemaFieldProps) {
  const { value, onChange, schema, mistakes, at } = props;
  const isLong = (schema.maxLength ?? 0) > longText || schema.format === "markdown" || (typeof value === "string" && value.includes("\n"));
  return (
    <Field label={labelOf(props)} value={typeof value === "string" ? value : ""} onChange={(text) => onChange(text === "" ? undefined : text)} autoComplete="off"
      type={inputTypes[schema.format ?? ""] ?? "text"} isRequired={props.isRequired} error={mistakes.get(at)} {...hintOf(props)} {...(isLong && { rows: 4 })} />
  );
}
