import { type ReactNode, useEffect } from "react";
import { showScreenTitle } from "./document_title";
import styles from "./page.module.css";

/** Properties of a Page. */
export interface PageProps {
  title: string;
  /** What follows the title, such as a status. */
  beside?: ReactNode;
  /** A line above the title: links to where the screen belongs. */
  trail?: ReactNode;
  /** Buttons at the end of the header. */
  actions?: ReactNode;
  /** `fixed`: the content fills the screen and scrolls itself. */
  layout?: "scrolling" | "fixed";
  children: ReactNode;
}

/** A screen with its header. The title becomes the title of the document. */
export function Page({ title, beside, trail, actions, layout = "scrolling", children }: PageProps) {
  useEffect(() => showScreenTitle(title), [title]);
  return (
    <div className={`${styles.page} ${styles[layout]}`}>
      <header className={styles.header}>
        <div className={styles.heading}>
          {trail !== undefined && <nav aria-label="Breadcrumb" className={styles.trail}>{trail}</nav>}
          <div className={styles.title}>
            <h1 className="truncate" tabIndex={-1}>{title}</h1>
            {beside}
          </div>
        </div>
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </header>
      <div className={styles.content}>{children}</div>
    </div>
  );
}

/** What a screen shows when it has nothing yet: what belongs here, and how to get it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={styles.empty}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** What a screen shows until its first data arrives. */
export function Loading({ label = "Loading …" }: { label?: string }) {
  return <p className={styles.loading} role="status">{label}</p>;
}
