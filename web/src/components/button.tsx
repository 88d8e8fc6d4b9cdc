import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps, Tooltip, TooltipTrigger } from "react-aria-components";
import { Link } from "wouter";
import styles from "./button.module.css";

/** Properties of a Button. */
export interface ButtonProps extends Omit<AriaButtonProps, "className" | "style" | "children"> {
  /** `primary`: the main action of a screen or dialog, at most one. `danger`: it destroys something. Default `plain`. */
  kind?: "plain" | "primary" | "danger" | "quiet";
  children: ReactNode;
}

/** A button with a text. */
export function Button({ kind = "plain", children, ...props }: ButtonProps) {
  return (
    <AriaButton {...props} className={`${styles.button} ${styles[kind] ?? ""}`}>
      {children}
    </AriaButton>
  );
}

/** A link that looks like a button: it leads to another screen. */
export function ButtonLink({ href, children }: { href: string; children: ReactNode }) {
  return <Link href={href} className={styles.button!}>{children}</Link>;
}

/** A button with an icon. The label is its name and its tooltip. */
export function IconButton({ label, children, ...props }: Omit<ButtonProps, "kind"> & { label: string }) {
  return (
    <TooltipTrigger delay={400}>
      <AriaButton {...props} aria-label={label} className={`${styles.button} ${styles.quiet} ${styles.icon}`}>
        {children}
      </AriaButton>
      <Tooltip className={styles.tooltip!} offset={6}>{label}</Tooltip>
    </TooltipTrigger>
  );
}
