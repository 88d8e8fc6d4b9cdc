/** The members of a JSON Schema that a form understands. */
export interface JSONSchema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  enumNames?: string[];
  oneOf?: JSONSchema[];
  anyOf?: JSONSchema[];
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  minItems?: number;
  maxItems?: number;
  items?: JSONSchema;
  properties?: Record<string, JSONSchema>;
  required?: string[];
}

/** An option of a schema that allows a fixed set of values. */
export interface SchemaOption {
  value: unknown;
  label: string;
}

/** The control that shows a schema. `json`: no other control fits. */
export type FieldKind = "text" | "number" | "boolean" | "choice" | "choices" | "object" | "json";

/** A text that its user has entered and that is not a value of the schema, such as incomplete JSON. */
export class Unparsed {
  constructor(
    readonly text: string,
    readonly reason: string,
  ) {}
}

const deepestForm = 5;

/** Returns a schema with its reference replaced. Only references into the document itself are followed. */
export function resolveSchema(schema: unknown, root: unknown): JSONSchema {
  let found = isObject(schema) ? (schema as JSONSchema) : {};
  for (let steps = 0; typeof found.$ref === "string" && steps < 8; steps++) {
    const path = found.$ref.startsWith("#/") ? found.$ref.slice(2).split("/") : [];
    const target = path.reduce<unknown>((at, name) => (isObject(at) ? at[name.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined), root);
    if (path.length === 0 || !isObject(target)) return {};
    found = target as JSONSchema;
  }
  return found;
}

/** Returns the type of a schema, without `null`. */
export function typeOf({ type, properties }: JSONSchema): string | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((name) => name !== undefined && name !== "null");
  if (types.length === 0 && properties) return "object";
  return types.length === 1 ? types[0] : undefined;
}

/** Returns the options of a schema with a fixed set of scalar values, or undefined. */
export function optionsOf(schema: JSONSchema): SchemaOption[] | undefined {
  const named = schema.oneOf ?? schema.anyOf;
  if (named?.length && named.every((option) => option.const !== undefined)) {
    return named.map((option) => ({ value: option.const, label: option.title ?? String(option.const) }));
  }
  const values = schema.enum?.filter((value) => value !== null);
  if (!values?.length || values.some((value) => typeof value === "object")) return undefined;
  return values.map((value, i) => ({ value, label: schema.enumNames?.[i] ?? String(value) }));
}

/** Returns the control for a schema at a depth of the form, from 0. */
export function kindOf(schema: JSONSchema, root: unknown, depth: number): FieldKind {
  if (optionsOf(schema)) return "choice";
  switch (typeOf(schema)) {
    case "string":
      return "text";
    case "number":
    case "integer":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return optionsOf(resolveSchema(schema.items, root)) ? "choices" : "json";
    case "object":
      return schema.properties && Object.keys(schema.properties).length > 0 && depth < deepestForm ? "object" : "json";
    default:
      return "json";
  }
}

/** Returns the value with which a form begins: the default of the schema, of each of its members, or undefined. */
export function initialValue(schema: JSONSchema, root: unknown, depth = 0): unknown {
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (kindOf(schema, root, depth) !== "object") return undefined;
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) => [name, initialValue(resolveSchema(member, root), root, depth + 1)] as const);
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

/** Returns what is wrong with a value, by JSON pointer. The server checks everything else. */
export function mistakesOf(value: unknown, schema: JSONSchema, root: unknown, isRequired: boolean, at = ""): Map<string, string> {
  const mistakes = new Map<string, string>();
  const mistake = mistakeOf(value, schema, isRequired);
  if (mistake !== undefined) mistakes.set(at, mistake);
  if (!isObject(value) || value instanceof Unparsed) return mistakes;
  const members = schema.properties ?? {};
  for (const [name, member] of Object.entries(members)) {
    const isNeeded = schema.required?.includes(name) ?? false;
    for (const entry of mistakesOf(value[name], resolveSchema(member, root), root, isNeeded, `${at}/${name}`)) mistakes.set(...entry);
  }
  return mistakes;
}

function mistakeOf(value: unknown, schema: JSONSchema, isRequired: boolean): string | undefined {
  if (value instanceof Unparsed) return value.reason;
  if (value === undefined || value === "") {
    const isEmpty = value === undefined || (schema.minLength ?? 0) > 0;
    return isRequired && isEmpty ? "This is needed." : undefined;
  }
  if (typeof value === "string") return textMistake(value, schema);
  if (typeof value === "number") return numberMistake(value, schema);
  if (Array.isArray(value)) {
    if (value.length < (schema.minItems ?? 0)) return `Choose at least ${schema.minItems}.`;
    if (value.length > (schema.maxItems ?? Infinity)) return `Choose at most ${schema.maxItems}.`;
  }
  return undefined;
}

function textMistake(value: string, { minLength = 0, maxLength = Infinity, pattern }: JSONSchema): string | undefined {
  const { length } = [...value];
  if (length < minLength) return `At least ${minLength} characters, not ${length}.`;
  if (length > maxLength) return `At most ${maxLength} characters, not ${length}.`;
  try {
    if (pattern !== undefined && !new RegExp(pattern, "u").test(value)) return `It must match ${pattern}`;
  } catch {
    // a pattern of another dialect: the server checks it
  }
  return undefined;
}

function numberMistake(value: number, schema: JSONSchema): string | undefined {
  const { minimum = -Infinity, maximum = Infinity, exclusiveMinimum = -Infinity, exclusiveMaximum = Infinity } = schema;
  if (typeOf(schema) === "integer" && !Number.isInteger(value)) return "A whole number is needed.";
  if (value < minimum) return `At least ${minimum}.`;
  if (value > maximum) return `At most ${maximum}.`;
  if (value <= exclusiveMinimum) return `More than ${exclusiveMinimum}.`;
  if (value >= exclusiveMaximum) return `Less than ${exclusiveMaximum}.`;
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
