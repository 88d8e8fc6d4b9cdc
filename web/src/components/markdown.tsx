import { lazy, memo, Suspense } from "react";
import { safeText } from "./safe_text";
import styles from "./markdown.module.css";

const Rendered = lazy(() => import("./markdown_rendered"));

/** Markdown of a model. Until its renderer is loaded, it shows the source. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={styles.markdown}>
      <Suspense fallback={<p>{safeText(text)}</p>}>
        <Rendered text={text} />
      </Suspense>
    </div>
  );
});
