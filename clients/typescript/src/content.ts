/**
 * Returns the text of a message. The content of a message is a string, a list of parts such as texts and images, or absent:
 * then the text is that of the text parts, or "".
 */
export function textOf({ content }: { content?: unknown }): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  const parts = content as readonly { type?: string; text?: string }[];
  return parts.flatMap(({ type, text }) => (type === "text" && text !== undefined ? [text] : [])).join("\n");
}
