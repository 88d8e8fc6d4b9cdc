import { autocompletion, closeBrackets, closeBracketsKeymap, type CompletionSource, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { useEffect, useEffectEvent, useImperativeHandle, useRef, type Ref } from "react";
import { codeTheme } from "./code_theme";
import styles from "./yaml_editor.module.css";

/** A mistake or a warning in the text. Lines and columns count from 1. */
export interface Mark {
  severity: "error" | "warning";
  message: string;
  line?: number | undefined;
  column?: number | undefined;
}

/** What a parent can do with a YAMLEditor. */
export interface YAMLEditorHandle {
  focus: () => void;
  /** Moves the cursor to a mark, and shows it. */
  show: (mark: Mark) => void;
}

/** Properties of a YAMLEditor. */
export interface YAMLEditorProps {
  label: string;
  /** The text. The editor shows another value only if it differs from its own text. */
  value: string;
  onChange?: (text: string) => void;
  isReadOnly?: boolean;
  marks?: readonly Mark[];
  complete?: CompletionSource;
  /** Whether the editor has the focus at first. */
  autoFocus?: boolean;
  ref?: Ref<YAMLEditorHandle>;
}

/** An editor of YAML. Load it lazily: CodeMirror is a chunk of its own. */
export default function YAMLEditor({ label, value, onChange, isReadOnly = false, marks = [], complete, autoFocus = false, ref }: YAMLEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const changed = useEffectEvent((text: string) => onChange?.(text));
  const completed = useEffectEvent<CompletionSource>((context) => complete?.(context) ?? null);
  const mode = useRef(new Compartment());
  useEffect(() => {
    const editor = new EditorView({
      parent: place.current!,
      doc: value,
      extensions: [
        editing((context) => completed(context)),
        mode.current.of(readOnly(isReadOnly, label)),
        EditorView.updateListener.of((update) => update.docChanged && changed(update.state.doc.toString())),
      ],
    });
    view.current = editor;
    if (autoFocus) editor.focus();
    return () => editor.destroy();
  }, []); // the editor owns its text: later values are changes of it
  useEffect(() => view.current?.dispatch({ effects: mode.current.reconfigure(readOnly(isReadOnly, label)) }), [isReadOnly, label]);
  useEffect(() => {
    const { current: editor } = view;
    if (editor && editor.state.doc.toString() !== value) editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const { current: editor } = view;
    editor?.dispatch(setDiagnostics(editor.state, marks.map((mark) => diagnosticOf(editor.state.doc, mark))));
  }, [marks]);
  useImperativeHandle(ref, () => ({
    focus: () => view.current?.focus(),
    show: (mark) => {
      const { current: editor } = view;
      if (!editor) return;
      editor.dispatch({ selection: { anchor: diagnosticOf(editor.state.doc, mark).from }, scrollIntoView: true });
      editor.focus();
    },
  }), []);
  return <div ref={place} className={styles.editor} />;
}

function editing(complete: CompletionSource) {
  return [
    codeTheme, EditorView.theme({ "&": { height: "100%" } }), yaml(), indentUnit.of("  "), lineNumbers(), foldGutter(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(),
    closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(),
    autocompletion({ override: [complete], icons: false }),
    // Tab leaves the editor, so that the keyboard is not trapped; Mod-] indents.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap]),
  ];
}

const readOnly = (isReadOnly: boolean, label: string) => [
  EditorState.readOnly.of(isReadOnly),
  EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": String(isReadOnly), tabindex: "0" }),
];

// A mark without a column is about its line; one without a line is about the beginning of the text.
function diagnosticOf(doc: Text, { severity, message, line = 1, column }: Mark): Diagnostic {
  const at = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const indent = at.text.length - at.text.trimStart().length;
  const from = Math.min(at.from + (column === undefined ? indent : column - 1), at.to);
  const word = /^[^\s:,{}[\]]+/.exec(at.text.slice(from - at.from))?.[0].length ?? 0;
  return { from, to: word > 0 ? from + word : at.to, severity, message };
}
