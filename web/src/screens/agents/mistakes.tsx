import { safeText } from "../../components/safe_text";
import type { Mark } from "../../components/yaml_editor";
import styles from "./definition.module.css";

/** The mistakes and warnings of a definition. A click leads to the place in the text. */
export function Mistakes({ marks, onSelect }: { marks: readonly Mark[]; onSelect: (mark: Mark) => void }) {
  if (marks.length === 0) return null;
  return (
    <section className={styles.mistakes} aria-labelledby="mistakes">
      <h2 id="mistakes">{title(marks)}</h2>
      <ul>
        {marks.map((mark, i) => (
          <li key={i}>
            <button type="button" className={styles.mistake} onClick={() => onSelect(mark)}>
              <span className={styles[mark.severity]}>{mark.severity === "error" ? "Error" : "Warning"}</span>
              <span className="muted number">{mark.line === undefined ? "" : `line ${mark.line}`}</span>
              <span className={styles.message}>{safeText(mark.message)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function title(marks: readonly Mark[]): string {
  const errors = marks.filter(({ severity }) => severity === "error").length;
  const parts = [[errors, "error"], [marks.length - errors, "warning"]] as const;
  return parts.filter(([n]) => n > 0).map(([n, word]) => `${n} ${word}${n === 1 ? "" : "s"}`).join(", ");
}
