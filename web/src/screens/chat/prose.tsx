import { memo, useMemo, useState } from "react";
import { Markdown } from "../../components/markdown";
import { LongText } from "./long_text";
import styles from "./prose.module.css";

// As many blocks are shown at first, and as many more on each request.
const pageSize = 300;
// A longer block is shown as plain text: the time to read Markdown grows with it.
const longestBlock = 20_000;

/**
 * Markdown that may grow many times a second, and may be very long. Only blocks that have changed are read again.
 */
export const Prose = memo(function Prose({ text }: { text: string }) {
  const [shown, setShown] = useState(pageSize);
  const blocks = useMemo(() => blocksOf(text), [text]);
  const rest = blocks.length - shown;
  return (
    <div className={styles.prose}>
      {blocks.slice(0, shown).map((block, i) => (block.length > longestBlock ? <LongText key={i} text={block} /> : <Markdown key={i} text={block} />))}
      {rest > 0 && (
        <button type="button" className={styles.more} onClick={() => setShown(shown + pageSize)}>
          Show {Math.min(rest, pageSize)} of {rest} more paragraphs
        </button>
      )}
    </div>
  );
});

const fence = /^ {0,3}(`{3,}|~{3,})/;
const item = /^ {0,3}([-*+]|\d{1,9}[.)])\s/;

/** Returns the blocks of a Markdown text: it is split at blank lines outside of fenced code and lists. */
export function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let isBlank = false; // the line before is blank
  let open = ""; // the fence of the code that the line is in
  for (const line of text.split("\n")) {
    const isInside = open !== "" || /^\s/.test(line) || (item.test(line) && item.test(block[0] ?? ""));
    if (isBlank && line.trim() !== "" && !isInside) {
      blocks.push(block.join("\n"));
      block = [];
    }
    const [, marker = ""] = fence.exec(line) ?? [];
    if (open === "") open = marker;
    else if (marker.startsWith(open)) open = "";
    block.push(line);
    isBlank = line.trim() === "";
  }
  const last = block.join("\n");
  return last.trim() === "" ? blocks : [...blocks, last];
}
