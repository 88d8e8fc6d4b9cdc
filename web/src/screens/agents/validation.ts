import { type Agent, ProblemError, type Validation as Answer } from "@perdure/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import type { Mark } from "../../components/yaml_editor";
import { useClient } from "../../session";

/** What the server says about a text. */
export interface Validation {
  /** `unknown`: the server did not check it. */
  state: "valid" | "invalid" | "checking" | "unknown";
  marks: readonly Mark[];
}

const noMarks: readonly Mark[] = [];

/** Has the server check a definition, when its text has not changed for a moment. */
export function useValidation({ name, scope }: Pick<Agent, "name" | "scope">, text: string | undefined): Validation {
  const client = useClient();
  const settled = useSettled(text, 350);
  const { data, isError } = useQuery({
    queryKey: ["validation", name, scope, settled],
    queryFn: ({ signal }) => client.validateAgent(settled!, { scope }, { signal }),
    enabled: settled !== undefined,
    staleTime: 60_000,
    gcTime: 60_000,
    placeholderData: keepPreviousData,
  });
  const marks = useMemo(() => (data ? [...marksOf("error", data.errors), ...marksOf("warning", data.warnings), ...nameMark(name, data)] : noMarks), [data, name]);
  if (isError) return { state: "unknown", marks: noMarks };
  if (data === undefined || settled !== text) return { state: "checking", marks };
  return { state: marks.some(({ severity }) => severity === "error") ? "invalid" : "valid", marks };
}

// The text is published under the name of this agent only.
const nameMark = (name: string, { definition }: Answer): Mark[] =>
  definition === undefined || definition.name === name ? [] : [{ severity: "error", message: `name must be ${name}: another name is another agent` }];

const marksOf = (severity: Mark["severity"], mistakes: Answer["errors"]): Mark[] => mistakes.map(({ detail, line, column }) => ({ severity, message: detail, line, column }));

/** The mistakes in a definition for which the server has refused to publish it. */
export function mistakesOf(error: unknown): Mark[] {
  if (!(error instanceof ProblemError) || error.problem.code !== "invalid_agent") return [];
  const { errors } = error.problem as { errors?: Answer["errors"] };
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
