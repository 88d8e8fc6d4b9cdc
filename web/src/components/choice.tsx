import { Button, FieldError, Label, ListBox, ListBoxItem, Popover, Select, SelectValue } from "react-aria-components";
import { ChevronIcon } from "./icons";
import styles from "./choice.module.css";

/** An option of a Choice. */
export interface Option {
  id: string;
  label: string;
}

/** Properties of a Choice. */
export interface ChoiceProps {
  label: string;
  isLabelHidden?: boolean;
  options: readonly Option[];
  value: string;
  onChange: (id: string) => void;
  isDisabled?: boolean;
  /** Why the option is invalid. */
  error?: string | undefined;
}

/** A field with one of several options. */
export function Choice({ label, isLabelHidden = false, options, value, onChange, isDisabled = false, error }: ChoiceProps) {
  return (
    <Select className={styles.choice!} value={value} onChange={(key) => onChange(String(key))} isDisabled={isDisabled} isInvalid={error !== undefined}>
      <Label className={isLabelHidden ? "visually-hidden" : styles.label!}>{label}</Label>
      <Button className={styles.button!}>
        <SelectValue className={styles.value!} />
        <ChevronIcon />
      </Button>
      <FieldError className={styles.error!}>{error}</FieldError>
      <Popover className={styles.popover!}>
        <ListBox className={styles.list!} items={options}>
          {(option) => <ListBoxItem id={option.id} textValue={option.label} className={styles.option!}>{option.label}</ListBoxItem>}
        </ListBox>
      </Popover>
    </Select>
  );
}
