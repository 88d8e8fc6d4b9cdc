import { announce } from "../../components/announcer";
import { IconButton } from "../../components/button";
import { CopyIcon } from "../../components/icons";

/** Copies a text. */
export function CopyButton({ label, text }: { label: string; text: string }) {
  const copy = () => void navigator.clipboard.writeText(text).then(() => announce("Copied"), () => announce("The browser does not allow to copy"));
  return <IconButton label={label} onPress={copy}><CopyIcon /></IconButton>;
}
