import type { PendingToolCall } from "@perdure/client/react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../../components/button";
import { Field } from "../../components/field";
import { Problem } from "../../components/problem";
import { SchemaForm } from "../../components/schema_form";
import { Sending } from "../../components/sending";
import { resultSchemaOf } from "./client_tools";
import { useConversation } from "./conversation_context";
import styles from "./interrupt_view.module.css";

/** A client tool call that waits for its result: a form, as the tool was declared with the schema of its result or not. */
export function ClientToolCall({ call, hasFrame = false }: { call: PendingToolCall; hasFrame?: boolean }) {
  const { store } = useConversation();
  const [error, setError] = useState<string>();
  const sent = useMutation({
    mutationFn: ({ value, failure }: { value?: unknown; failure?: string }) => {
      const content = failure ?? (typeof value === "string" ? value : JSON.stringify(value));
      return store.sendToolResult({ toolCallId: call.toolCallId, content, ...(failure !== undefined && { error: failure }) });
    },
  });
  const schema = resultSchemaOf(call.toolName) ?? { type: "string", title: "Result", maxLength: 1_000_000 };
  const fail = () => (error?.trim() ? sent.mutate({ failure: error.trim() }) : setError(error ?? ""));
  return (
    <section className={`${styles.interrupt} ${hasFrame ? styles.framed : ""}`} aria-label="Client tool">
      <p className={styles.message}>This tool runs in the client. Answer in its place.</p>
      {error === undefined ? (
        <SchemaForm schema={schema} label="Result" submitLabel="Send the result" isPending={sent.isPending} onSubmit={(value) => sent.mutate({ value })}>
          <Button isDisabled={sent.isPending} onPress={fail}>Fail …</Button>
        </SchemaForm>
      ) : (
        <form className={styles.failure} onSubmit={(event) => { event.preventDefault(); fail(); }}>
          <Field label="Error" value={error} onChange={setError} autoFocus hint="The model receives it." />
          <div className={styles.actions}>
            <Button kind="quiet" onPress={() => setError(undefined)}>Back</Button>
            <Button type="submit" kind="danger" isDisabled={sent.isPending || error.trim() === ""}>Send the error</Button>
          </div>
        </form>
      )}
      {sent.error && <Problem error={sent.error} />}
      {sent.isPending && <Sending />}
    </section>
  );
}
