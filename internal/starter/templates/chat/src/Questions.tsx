import type { Decision, PerdureClient } from "@perdure/client";
import { type OpenInterrupt, useInterrupts } from "@perdure/client/react";
import { type FormEvent, useState } from "react";

interface Props {
  client: PerdureClient;
  options: { threadId: string; agent: string };
}

interface Field {
  type?: string;
  title?: string;
  enum?: string[];
  default?: unknown;
}

interface Schema extends Field {
  properties?: Record<string, Field>;
  required?: string[];
}

export function Questions({ client, options }: Props) {
  const { interrupts, store } = useInterrupts(client, options);
  return interrupts
    .filter(({ metadata }) => metadata?.["perdure.question"] && !metadata["perdure.wait"])
    .map((interrupt) => <Question key={interrupt.id} {...interrupt} decide={(decision) => store.decide(interrupt.id, decision)} />);
}

function Question({ message, responseSchema, decide }: OpenInterrupt & { decide: (decision: Decision) => Promise<unknown> }) {
  const [error, setError] = useState("");
  const schema = (responseSchema ?? {}) as Schema;
  const fields = Object.entries(schema.properties ?? { answer: schema }); // a schema without properties is one field
  const submit = (decision: Decision) => {
    setError("");
    decide(decision).catch(({ problem, message }) => setError(`${problem?.pointer ?? ""} ${problem?.detail ?? message}`));
  };
  const answer = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const values = Object.fromEntries(fields.map(([name, field]) => [name, valueOf(form, name, field)]));
    submit({ decision: "answer", content: schema.properties ? values : values.answer });
  };
  return (
    <form onSubmit={answer}>
      <p>{message}</p>
      {fields.map(([name, field]) => (
        <label key={name}>
          {field.title ?? name} <Input name={name} field={field} isRequired={!schema.properties || !!schema.required?.includes(name)} />
        </label>
      ))}
      <button>Answer</button>
      <button type="button" onClick={() => submit({ decision: "reject", reason: "I do not know." })}>Decline</button>
      {error && <p role="alert">{error}</p>}
    </form>
  );
}

function Input({ name, field, isRequired }: { name: string; field: Field; isRequired: boolean }) {
  if (field.enum) return <select name={name} required={isRequired}>{field.enum.map((value) => <option key={value}>{value}</option>)}</select>;
  if (field.type === "boolean") return <input name={name} type="checkbox" defaultChecked={field.default === true} />;
  const isNumber = field.type === "integer" || field.type === "number";
  return <input name={name} type={isNumber ? "number" : "text"} step="any" required={isRequired} defaultValue={String(field.default ?? "")} />;
}

// Returns the value of a field as its schema requires it; undefined leaves it out of the answer.
function valueOf(form: FormData, name: string, { type }: Field) {
  const text = form.get(name);
  if (type === "boolean") return text !== null;
  if (text === null || text === "") return undefined;
  return type === "integer" || type === "number" ? Number(text) : text;
}
