import { type Agent, ProblemError } from "@perdure/client";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Mark } from "../../components/yaml_editor";
import { requestJSON } from "../../session";
import { ignoreMissing } from "./queries";

interface Finding {
  message?: string;
  detail?: string;
  line?: number;
  column?: number;
}

interface Answer {
  valid: boolean;
  errors?: Finding[];
  warnings?: (Finding | string)[];
  /** The definition with all defaults, of a valid one. */
  definition?: { name?: string };
}

/** What the server says about a text. */
export interface Validation {
  /** `unknown`: the server cannot check without publishing. */
  state: "valid" | "invalid" | "checking" | "unknown";
  marks: readonly Mark[];
  error: unknown;
}

const noMarks: readonly Mark[] = [];

/** Has the server check a definition, when its text has not changed for a moment. */
export function useValidation({ name, scope }: Agent, text: string | undefined): Validation {
  const settled = useSettled(text, 350);
  const { data, error } = useQuery({
    queryKey: ["agents", name, "validation", scope, settled],
    queryFn: ({ signal }) => validate(scope, settled!, signal).catch(ignoreMissing),
    enabled: settled !== undefined,
    staleTime: 60_000,
    gcTime: 60_000,
    placeholderData: (previous) => previous,
  });
  const marks = useMemo(() => (data ? [...marksOf("error", data.errors ?? []), ...marksOf("warning", data.warnings ?? []), ...nameMark(name, data)] : noMarks), [data, name]);
  if (data === null) return { state: "unknown", marks: noMarks, error: null };
  if (data === undefined || settled !== text) return { state: "checking", marks, error };
  return { state: marks.some(({ severity }) => severity === "error") ? "invalid" : "valid", marks, error };
}

const validate = (scope: string, text: string, signal: AbortSignal) =>
  requestJSON<Answer>(`/v1/agents/validate?scope=${scope}`, { method: "POST", body: text, headers: { "Content-Type": "application/yaml" }, signal });

// The text is published under the name of this agent only.
const nameMark = (name: string, { definition }: Answer): Mark[] =>
  definition === undefined || definition.name === name ? [] : [{ severity: "error", message: `name must be ${name}: another name is another agent` }];

const marksOf = (severity: Mark["severity"], findings: readonly (Finding | string)[]): Mark[] =>
  findings.map((finding) => (typeof finding === "string" ? { severity, message: finding } : { severity, message: finding.message ?? finding.detail ?? "", line: finding.line, column: finding.column }));

/** The mistakes in a definition for which the server has refused to publish it. */
export function mistakesOf(error: unknown): Mark[] {
  if (!(error instanceof ProblemError) || error.problem.code !== "invalid_agent") return [];
  const { errors } = error.problem as unknown as { errors?: Finding[] };
  return marksOf("error", errors ?? [{ detail: error.problem.detail ?? error.message }]);
}

function useSettled<Value>(value: Value, delay: number): Value {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), delay);
    return () => window.clearTimeout(timer);
  }, [value, delay]);
  return settled;
}
