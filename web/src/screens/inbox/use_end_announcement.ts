import type { Approval } from "@perdure/client";
import { useEffect, useRef } from "react";
import { announce } from "../../components/announcer";
import { personText, verdictText } from "../../components/decision_text";
import type { Caller } from "./use_caller";

/** Announces that the approval that is shown has expired, or that another person has decided it. */
export function useEndAnnouncement({ decisions }: Approval, isOpen: boolean, caller: Caller | undefined): void {
  const wasOpen = useRef(isOpen);
  const last = decisions.at(-1);
  useEffect(() => {
    if (isOpen) wasOpen.current = true;
    else if (wasOpen.current && last !== undefined) {
      wasOpen.current = false;
      if (last.decision === "expire") announce("The approval has expired");
      else if ((last.by ?? "") !== caller?.subject) announce(`${personText(last.by)} ${verdictText(last.decision)}`);
    }
  }, [isOpen, last, caller]);
}
