import type { Completion, CompletionSource } from "@codemirror/autocomplete";
import { placeAt } from "./yaml_path";

/** A JSON schema, as far as completion reads it. */
interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
  type?: string | string[];
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  oneOf?: Schema[];
  anyOf?: Schema[];
  allOf?: Schema[];
}

/** The names that a definition can use. */
export interface KnownNames {
  tools: readonly string[];
  agents: readonly string[];
  models: readonly string[];
}

/** Returns a completion of keys and values by the JSON schema of definitions, and of names. Without a schema it completes names only. */
export function definitionCompletion(schema: object | undefined, names: KnownNames): CompletionSource {
  const root = (schema ?? {}) as Schema;
  return (context) => {
    const place = placeAt(context.state.doc.toString(), context.pos);
    if (place === null || (place.typed === "" && !context.explicit && place.key === undefined)) return null;
    const around = resolve(root, [root], place.path);
    const options = place.key === undefined && place.path.at(-1) !== "-"
      ? keysOf(root, around)
      : valuesOf(root, place.key === undefined ? around : resolve(root, around, [place.key]), names, place.key ?? place.path.at(-2) ?? "", place.path);
    // An entry of a list of maps begins with a key.
    const entries = place.key === undefined && place.path.at(-1) === "-" ? keysOf(root, around) : [];
    return options.length + entries.length === 0 ? null : { from: place.from, options: [...options, ...entries], validFor: /^[\w:/.*-]*$/ };
  };
}

/** Returns a schema with its alternatives, without references. */
function variants(root: Schema, schema: Schema, depth = 0): Schema[] {
  if (depth > 12) return [];
  const { $ref, oneOf = [], anyOf = [], allOf = [] } = schema;
  const referred = $ref === undefined ? [] : variants(root, lookup(root, $ref), depth + 1);
  return [schema, ...referred, ...[...oneOf, ...anyOf, ...allOf].flatMap((inner) => variants(root, inner, depth + 1))];
}

function lookup(root: Schema, reference: string): Schema {
  let found: unknown = root;
  for (const segment of reference.replace(/^#\/?/, "").split("/")) {
    if (segment !== "") found = (found as Record<string, unknown> | undefined)?.[segment];
  }
  return (found ?? {}) as Schema;
}

/** Returns the schemas at a path below others. */
function resolve(root: Schema, from: Schema[], path: readonly string[]): Schema[] {
  let found = from;
  for (const segment of path) {
    found = found.flatMap((schema) => variants(root, schema)).flatMap(({ properties, items, additionalProperties }) => {
      if (segment === "-") return items ? [items] : [];
      const property = properties?.[segment];
      if (property) return [property];
      return typeof additionalProperties === "object" ? [additionalProperties] : [];
    });
  }
  return found;
}

function keysOf(root: Schema, around: Schema[]): Completion[] {
  const found = new Map<string, Completion>();
  for (const { properties = {} } of around.flatMap((schema) => variants(root, schema))) {
    for (const [key, value] of Object.entries(properties)) {
      const description = variants(root, value).find((variant) => variant.description !== undefined)?.description;
      if (!found.has(key)) found.set(key, { label: key, apply: `${key}: `, type: "property", detail: typeOf(root, value), ...(description !== undefined && { info: description }) });
    }
  }
  return [...found.values()];
}

function typeOf(root: Schema, schema: Schema): string {
  const types = variants(root, schema).flatMap(({ type }) => type ?? []);
  return [...new Set(types)].join(" | ");
}

function valuesOf(root: Schema, at: Schema[], names: KnownNames, key: string, path: readonly string[]): Completion[] {
  const constants = at.flatMap((schema) => variants(root, schema)).flatMap((schema) => [...(schema.enum ?? []), ...(schema.const === undefined ? [] : [schema.const]), ...(schema.type === "boolean" ? [true, false] : [])]);
  const known = namesOf(names, key, path);
  return [...new Set([...constants.map(String), ...known])].map((label) => ({ label, type: known.includes(label) ? "variable" : "constant" }));
}

function namesOf({ tools, agents, models }: KnownNames, key: string, path: readonly string[]): readonly string[] {
  switch (key) {
    case "tools": return [...tools, ...agents.flatMap((agent) => [`agent:${agent}`, `handoff:${agent}`])];
    case "tool": return tools.map((tool) => tool.replace(/^(mcp|client):/, ""));
    case "agent": return path.includes("steps") || path.includes("parallel") ? agents : [];
    case "model": return models;
  }
  return [];
}
