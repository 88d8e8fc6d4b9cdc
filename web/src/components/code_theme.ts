import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "12.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-content:focus-visible": { outline: "none" }, // the cursor and the active line show the focus
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--text-muted)", border: "0", paddingInlineStart: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selected)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-tooltip": { border: "1px solid var(--line)", borderRadius: "var(--radius)", backgroundColor: "var(--raised)", color: "var(--text)", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--selected)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--text-muted)", fontStyle: "normal" },
  ".cm-completionInfo": { maxWidth: "340px", padding: "6px 10px", fontFamily: "var(--sans)", fontSize: "12.5px" },
  ".cm-diagnostic": { fontFamily: "var(--sans)", fontSize: "12.5px", padding: "5px 10px" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--red)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--amber)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--red)", textDecorationSkipInk: "none" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--amber)", textDecorationSkipInk: "none" },
  ".cm-changedLine, &.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "color-mix(in srgb, var(--green-fill) 70%, transparent)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "color-mix(in srgb, var(--red-fill) 70%, transparent)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "color-mix(in srgb, var(--red) 17%, transparent)" },
  "&.cm-merge-b .cm-changedText, .cm-changedText": { background: "color-mix(in srgb, var(--green) 17%, transparent)" },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { background: "var(--red)" },
  "&.cm-merge-b .cm-changedLineGutter, .cm-changedLineGutter": { background: "var(--green)" },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '"···"' },
  ".cm-collapsedLines": { background: "var(--sunken)", color: "var(--text-muted)", padding: "4px 10px", fontFamily: "var(--sans)" },
});

const highlighting = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--violet)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--green)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.keyword], color: "var(--blue)" },
  { tag: [tags.lineComment, tags.comment, tags.meta, tags.punctuation, tags.separator, tags.squareBracket, tags.brace], color: "var(--text-muted)" },
]);

/** The look of code: the colors of the page, and the nonce with which its policy permits their style sheet. */
export const codeTheme: Extension = [EditorView.cspNonce.of(nonce), theme, syntaxHighlighting(highlighting), EditorState.tabSize.of(2)];
