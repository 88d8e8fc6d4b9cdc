import { useState } from "react";
import { IconButton } from "../../components/button";
import { CloseIcon, ToolIcon } from "../../components/icons";
import { safeText } from "../../components/safe_text";
import { ClientToolDialog } from "./client_tool_dialog";
import { declareTools, useClientTools } from "./client_tools";
import styles from "./composer.module.css";

/** Properties of ClientTools. */
export interface ClientToolsProps {
  agent: string;
  /** The names of the tools that the agent takes; "*" for any. */
  names: readonly string[];
  /** Called after the dialog has closed, if what opened it is gone. */
  onLostFocus: () => void;
}

// The dialog gives back the focus when it is gone, in milliseconds at most.
const closingTime = 100;

/** The client tools that this tab declares to an agent, and those that the agent names and nobody has declared yet. */
export function ClientTools({ agent, names, onLostFocus }: ClientToolsProps) {
  const tools = useClientTools(agent);
  const [added, setAdded] = useState<string>(); // the name with which the dialog opens
  const close = () => {
    setAdded(undefined);
    window.setTimeout(() => document.activeElement === document.body && onLostFocus(), closingTime);
  };
  const missing = names.filter((name) => !name.includes("*") && !tools.some(({ tool }) => tool.name === name));
  return (
    <>
      <IconButton label="Add a client tool" onPress={() => setAdded(missing[0] ?? "")}><ToolIcon /></IconButton>
      {(tools.length > 0 || missing.length > 0) && (
        <ul className={styles.chips} aria-label="Client tools">
          {tools.map(({ tool }) => (
            <li key={tool.name} className={styles.chip}>
              <span className="mono truncate">{safeText(tool.name)}</span>
              <button type="button" aria-label={`Remove the tool ${tool.name}`} onClick={() => declareTools(agent, tools.filter((other) => other.tool !== tool))}><CloseIcon /></button>
            </li>
          ))}
          {missing.map((name) => (
            <li key={name}>
              <button type="button" className={styles.missing} title="The agent may call this tool, which this page does not declare yet" onClick={() => setAdded(name)}>Add {safeText(name)}</button>
            </li>
          ))}
        </ul>
      )}
      <ClientToolDialog agent={agent} name={added ?? ""} isOpen={added !== undefined} onClose={close} />
    </>
  );
}
