import { Link } from "wouter";
import styles from "./tab_links.module.css";

/** A tab of TabLinks. */
export interface TabLink {
  href: string;
  label: string;
  isCurrent: boolean;
}

/** Links between the parts of a screen, each with an address of its own. */
export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  return (
    <nav aria-label={label} className={styles.tabs}>
      {tabs.map((tab) => (
        <Link key={tab.href} href={tab.href} className={styles.tab} aria-current={tab.isCurrent ? "page" : undefined}>{tab.label}</Link>
      ))}
    </nav>
  );
}
