import type { ReactNode } from "react";
import { ToggleButton } from "react-aria-components";
import styles from "./button.module.css";

/** A button that is on or off. */
export function Toggle({ isOn, onChange, children }: { isOn: boolean; onChange: (isOn: boolean) => void; children: ReactNode }) {
  return (
    <ToggleButton isSelected={isOn} onChange={onChange} className={`${styles.button} ${styles.toggle}`}>
      {children}
    </ToggleButton>
  );
}
