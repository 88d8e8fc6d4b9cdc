import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { safeText } from "./safe_text";

// Images of content are never loaded: their address could carry the content to its author. A link shows where it goes, and
// its page learns nothing of this one.
const components: Components = {
  a: ({ href, children }) => (
    <a href={href} title={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  ),
  img: ({ alt, src }) => <span className="muted">[image {alt ? `“${alt}”` : ""} at {typeof src === "string" ? src : "an address"} is not loaded]</span>,
};

const plugins = [remarkGfm];

/** The default export is the component that Markdown loads when it is needed. */
export default function Rendered({ text }: { text: string }) {
  return (
    <ReactMarkdown remarkPlugins={plugins} components={components} skipHtml={false}>
      {safeText(text)}
    </ReactMarkdown>
  );
}
