import { useState } from "react";
import { safeText } from "../../components/safe_text";
import styles from "./long_text.module.css";

const mostCharacters = 4_000;
const mostLines = 60;

/** Plain text, of which the beginning is shown at first. */
export function LongText({ text, isMono = true }: { text: string; isMono?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  const start = isWhole ? text : beginningOf(text);
  return (
    <div className={`${styles.text} ${isMono ? styles.mono : ""}`}>
      {safeText(start)}
      {start.length < text.length && (
        <button type="button" className={styles.more} onClick={() => setWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </div>
  );
}

function beginningOf(text: string): string {
  let end = 0;
  for (let lines = 0; lines < mostLines; lines++) {
    const next = text.indexOf("\n", end);
    if (next === -1 || next > mostCharacters) return text.length > mostCharacters ? text.slice(0, mostCharacters) : text;
    end = next + 1;
  }
  return text.slice(0, end);
}
