import type { AwaitedEnd } from "@perdure/client";
import { BellIcon, ScheduleIcon } from "./icons";

/** The icon of what a wait waits for. */
export const WaitKindIcon = ({ kind }: Pick<AwaitedEnd, "kind">) => (kind === "event" ? <BellIcon /> : <ScheduleIcon />);
