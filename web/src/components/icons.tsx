import type { ReactNode } from "react";

/** An icon of 16 by 16 pixels, in the color of the text. */
export function Icon({ children }: { children: ReactNode }) {
  return (
    <svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      {children}
    </svg>
  );
}

export const ChatIcon = () => <Icon><path d="M2.5 3.5h11v7.5h-6L4.5 13.5V11h-2z" /></Icon>;
export const InboxIcon = () => <Icon><path d="M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 1.5h3l1-1.5H14" /></Icon>;
export const ThreadsIcon = () => <Icon><path d="M2.5 4h11M2.5 8h11M2.5 12h7" /></Icon>;
export const AgentIcon = () => <Icon><rect x="3" y="5" width="10" height="8" rx="2" /><path d="M8 5V2.5M6 8.5v1M10 8.5v1" /></Icon>;
export const ScheduleIcon = () => <Icon><circle cx="8" cy="8" r="5.5" /><path d="M8 5v3l2 1.5" /></Icon>;
export const UsageIcon = () => <Icon><path d="M3 13V8M8 13V3M13 13V6" /></Icon>;
export const SystemIcon = () => <Icon><rect x="2.5" y="3" width="11" height="4" rx="1" /><rect x="2.5" y="9" width="11" height="4" rx="1" /><path d="M5 5h.01M5 11h.01" /></Icon>;
export const ModelIcon = () => <Icon><path d="m8 2.5 1.4 4.1L13.5 8 9.4 9.4 8 13.5 6.6 9.4 2.5 8l4.1-1.4z" /></Icon>;
export const ToolIcon = () => <Icon><path d="M12.9 5.6a3.2 3.2 0 0 1-4.3 3.6l-4 4a1.3 1.3 0 0 1-1.8-1.8l4-4a3.2 3.2 0 0 1 3.6-4.3L8.6 4.9l2.5 2.5z" /></Icon>;
export const TurnIcon = () => <Icon><path d="M4 2.5v4.5a2.5 2.5 0 0 0 2.5 2.5H13M10 6.5l3 3-3 3" /></Icon>;
export const StepIcon = () => <Icon><rect x="2.5" y="3" width="4.5" height="4" rx="1" /><rect x="9" y="9" width="4.5" height="4" rx="1" /><path d="M7 5h4.2v4" /></Icon>;
export const UndoIcon = () => <Icon><path d="M6 3 3 6l3 3M3 6h6a3.5 3.5 0 0 1 0 7H6" /></Icon>;
export const CloseIcon = () => <Icon><path d="m4 4 8 8M12 4l-8 8" /></Icon>;
export const ChevronIcon = () => <Icon><path d="m4.5 6.5 3.5 3.5 3.5-3.5" /></Icon>;
export const ForwardIcon = () => <Icon><path d="m6 4 4 4-4 4" /></Icon>;
export const PlusIcon = () => <Icon><path d="M8 3v10M3 8h10" /></Icon>;
export const CheckIcon = () => <Icon><path d="m3 8.5 3.5 3.5L13 4.5" /></Icon>;
export const CrossIcon = CloseIcon;
export const CopyIcon = () => <Icon><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 5.5v-3h-8v8h3" /></Icon>;
export const StopIcon = () => <Icon><rect x="4" y="4" width="8" height="8" rx="1" /></Icon>;
export const PauseIcon = () => <Icon><path d="M5.5 3.5v9M10.5 3.5v9" /></Icon>;
export const PlayIcon = () => <Icon><path d="M5 3.5v9l7-4.5z" /></Icon>;
export const RetryIcon = () => <Icon><path d="M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5" /></Icon>;
export const ForkIcon = () => <Icon><circle cx="4" cy="3.5" r="1.5" /><circle cx="12" cy="3.5" r="1.5" /><circle cx="8" cy="12.5" r="1.5" /><path d="M4 5c0 3 4 2 4 6M12 5c0 3-4 2-4 6" /></Icon>;
export const EditIcon = () => <Icon><path d="m3 13 .5-3L10.500 3 13 5.500 6 12.500z" /></Icon>;
export const ThemeIcon = () => <Icon><circle cx="8" cy="8" r="5.500" /><path d="M8 2.500v11a5.500 5.500 0 0 0 0-11z" fill="currentColor" /></Icon>;
export const KeyboardIcon = () => <Icon><rect x="1.500" y="4" width="13" height="8" rx="1.500" /><path d="M4 6.500h.01M7 6.500h.01M10 6.500h.01M12.500 6.500h.01M5 9.500h6" /></Icon>;
export const AttachIcon = () => <Icon><path d="m12.500 7.500-4.500 4.500a2.800 2.800 0 0 1-4-4l5-5a1.900 1.900 0 0 1 2.700 2.700l-5 5" /></Icon>;
export const SendIcon = () => <Icon><path d="M8 13V3M4 7l4-4 4 4" /></Icon>;
export const ExternalIcon = () => <Icon><path d="M9 3h4v4M13 3 7.500 8.500M11 9.500V13H3V5h3.500" /></Icon>;
export const WaitIcon = () => <Icon><circle cx="8" cy="8" r="5.500" /><path d="M6.500 6v4M9.500 6v4" /></Icon>;
export const HourglassIcon = () => <Icon><path d="M4 2.500h8M4 13.500h8M5 2.500v2a3 3 0 0 0 6 0v-2M5 13.500v-2a3 3 0 0 1 6 0v2M8 7.500v1" /></Icon>;
export const DotIcon = () => <Icon><circle cx="8" cy="8" r="3" fill="currentColor" /></Icon>;
export const BellIcon = () => <Icon><path d="M4 11V7.500a4 4 0 0 1 8 0V11l1 1.500H3zM6.500 13.500h3" /></Icon>;
export const VoteIcon = () => <Icon><circle cx="6" cy="5.500" r="2.500" /><path d="M2 13c0-2.500 1.800-4 4-4s4 1.500 4 4M10.500 6l1.500 1.500 2.500-3" /></Icon>;
export const PanelIcon = () => <Icon><rect x="2.500" y="3" width="11" height="10" rx="1.500" /><path d="M10 3v10" /></Icon>;
export const DownIcon = () => <Icon><path d="M8 3v10M4 9l4 4 4-4" /></Icon>;
export const SignOutIcon = () => <Icon><path d="M6.500 3H3v10h3.500M10 5l3 3-3 3M13 8H6.500" /></Icon>;
