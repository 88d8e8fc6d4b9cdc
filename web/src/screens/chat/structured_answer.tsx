import { useMemo } from "react";
import { argumentsText } from "../../components/decision_text";
import { ForwardIcon } from "../../components/icons";
import { JSONView } from "../../components/json_view";
import { safeText } from "../../components/safe_text";
import styles from "./entry_view.module.css";

const longestText = 100_000;
const longestPreview = 160;

/** Returns the object or the list of an answer that is JSON, as steps of pipelines give it, or undefined. */
export function useStructured(text: string, isActive: boolean): object | undefined {
  return useMemo(() => {
    if (isActive || text.length > longestText || !/^\s*[[{]/.test(text)) return undefined;
    try {
      return JSON.parse(text) as object;
    } catch {
      return undefined;
    }
  }, [text, isActive]);
}

/** An answer that is JSON: a line, which opens. */
export function StructuredAnswer({ value }: { value: object }) {
  return (
    <details className={styles.structured}>
      <summary><span className={styles.chevron}><ForwardIcon /></span> <span className="mono truncate">{safeText(argumentsText(value).slice(0, longestPreview))}</span></summary>
      <div className={styles.thought}><JSONView value={value} depth={3} /></div>
    </details>
  );
}
