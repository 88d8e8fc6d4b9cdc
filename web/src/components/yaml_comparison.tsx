import { yaml } from "@codemirror/lang-yaml";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { useEffect, useRef, useSyncExternalStore } from "react";
import { codeTheme } from "./code_theme";
import styles from "./yaml_editor.module.css";

/** A text of a YAMLComparison. */
export interface ComparedText {
  label: string;
  text: string;
}

const narrow = window.matchMedia("(max-width: 900px)");

function subscribe(listener: () => void): () => void {
  narrow.addEventListener("change", listener);
  return () => narrow.removeEventListener("change", listener);
}

const shown = (label: string) => [
  codeTheme, yaml(), lineNumbers(), EditorView.lineWrapping, EditorState.readOnly.of(true),
  EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true" }),
];

/** Two texts with their differences: side by side, or in one column on a narrow screen. Load it lazily. */
export default function YAMLComparison({ before, after }: { before: ComparedText; after: ComparedText }) {
  const place = useRef<HTMLDivElement>(null);
  const isNarrow = useSyncExternalStore(subscribe, () => narrow.matches);
  useEffect(() => {
    const parent = place.current!;
    const collapseUnchanged = { margin: 3, minSize: 6 };
    const view = isNarrow
      ? new EditorView({ parent, doc: after.text, extensions: [shown(`${before.label}, changed to ${after.label}`), unifiedMergeView({ original: before.text, mergeControls: false, collapseUnchanged })] })
      : new MergeView({
        parent,
        a: { doc: before.text, extensions: shown(before.label) },
        b: { doc: after.text, extensions: shown(after.label) },
        collapseUnchanged,
      });
    return () => view.destroy();
  }, [before.text, before.label, after.text, after.label, isNarrow]);
  return (
    <div className={styles.comparison}>
      <div className={isNarrow ? `${styles.heads} ${styles.single}` : styles.heads}>
        {isNarrow ? <span>{before.label} → {after.label}</span> : <><span>{before.label}</span><span>{after.label}</span></>}
      </div>
      <div ref={place} />
    </div>
  );
}
