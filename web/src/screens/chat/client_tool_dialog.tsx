import { type FormEvent, useState } from "react";
import { Button } from "../../components/button";
import { Dialog, DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { JSONField } from "../../components/json_field";
import { Unparsed } from "../../components/json_schema";
import { declareTools, useClientTools } from "./client_tools";
import styles from "./interrupt_view.module.css";

const exampleParameters = { type: "object", properties: { question: { type: "string" } }, required: ["question"] };
const validName = /^[a-zA-Z0-9_-]{1,64}$/;

/** Properties of a ClientToolDialog. */
export interface ClientToolDialogProps {
  agent: string;
  /** The name of the tool at first. */
  name: string;
  isOpen: boolean;
  onClose: () => void;
}

/** Declares a tool of this page, so that an agent that takes client tools can be tried with one. */
export function ClientToolDialog({ isOpen, onClose, ...form }: ClientToolDialogProps) {
  return (
    <Dialog title="Add a client tool" isOpen={isOpen} onClose={onClose}>
      <ToolForm onClose={onClose} {...form} />
    </Dialog>
  );
}

function ToolForm({ agent, name: initial, onClose }: Omit<ClientToolDialogProps, "isOpen">) {
  const tools = useClientTools(agent);
  const [name, setName] = useState(initial);
  const [description, setDescription] = useState("");
  const [parameters, setParameters] = useState<unknown>(exampleParameters);
  const [result, setResult] = useState<unknown>();
  const isTaken = tools.some(({ tool }) => tool.name === name);
  const mistake = isTaken ? "This tool is declared already." : name !== "" && !validName.test(name) ? "Use letters, digits, _ and -, at most 64." : undefined;
  const isComplete = name !== "" && mistake === undefined && !(parameters instanceof Unparsed) && !(result instanceof Unparsed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isComplete) return;
    declareTools(agent, [...tools, { tool: { name, description, parameters: parameters ?? { type: "object" } }, ...(result !== undefined && { result }) }]);
    onClose();
  };
  return (
    <form className={styles.failure} onSubmit={submit}>
      <p className="muted">The agent can call it in the runs that this tab starts. You answer each call in the conversation.</p>
      <Field label="Name" value={name} onChange={setName} error={mistake} autoFocus autoComplete="off" placeholder="show_map" />
      <Field label="Description" value={description} onChange={setDescription} autoComplete="off" hint="The model reads it." />
      <JSONField label="JSON Schema of the arguments" initial={exampleParameters} onChange={setParameters} />
      <JSONField label="JSON Schema of the result (optional)" initial={undefined} onChange={setResult} hint="For the form with which you answer. Without it, the result is a text." />
      <DialogActions>
        <Button kind="quiet" onPress={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" isDisabled={!isComplete}>Add the tool</Button>
      </DialogActions>
    </form>
  );
}
