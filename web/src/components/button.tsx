import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps, Tooltip, TooltipTrigger } from "react-aria-components";
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
    <AriaButton {...props} className={`${styles.button} ${styles[kind]}`}>
      {children}
    </AriaButton>
  );
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
