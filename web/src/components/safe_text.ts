// Characters that change the direction of text, or that are invisible: content could show another text than it has.
const misleading = /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060\ufeff\u061c]/g;
const control = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** Returns a text of a model, a tool or another person with its misleading and control characters made visible. */
export function safeText(text: string): string {
  return text.replace(misleading, (c) => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`).replace(control, "␦");
}
