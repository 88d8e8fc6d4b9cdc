import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { IconButton } from "./button";
import { CloseIcon } from "./icons";
import styles from "./dialog.module.css";

/** Properties of a Dialog. */
export interface DialogProps {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  /** `side`: a panel at the edge of the screen. */
  place?: "center" | "side";
  /** `large`: as wide as the screen permits, for comparisons. */
  size?: "medium" | "large";
  children: ReactNode;
}

/** A modal dialog. Escape and a click outside close it. */
export function Dialog({ title, isOpen, onClose, place = "center", size = "medium", children }: DialogProps) {
  return (
    <ModalOverlay isOpen={isOpen} onOpenChange={(open) => !open && onClose()} isDismissable className={`${styles.overlay} ${styles[place]}`}>
      <Modal className={`${styles.modal} ${styles[size]}`}>
        <AriaDialog className={styles.dialog!}>
          <header className={styles.header}>
            <Heading slot="title">{title}</Heading>
            <IconButton label="Close" onPress={onClose}><CloseIcon /></IconButton>
          </header>
          <div className={styles.body}>{children}</div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** The buttons at the end of a dialog, the main action last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}
