import { AgentIcon, ForkIcon, Icon } from "./icons";

const ToolStepIcon = () => <Icon><path d="M12.9 5.6a3.2 3.2 0 0 1-4.3 3.6l-4 4a1.300 1.300 0 0 1-1.800-1.800l4-4a3.200 3.200 0 0 1 3.600-4.300L8.600 4.900l2.500 2.500z" /></Icon>;
const ApproveIcon = () => <Icon><circle cx="8" cy="5" r="2.500" /><path d="M3 13.500c0-3 2-4.500 5-4.500s5 1.500 5 4.500" /></Icon>;
const ListIcon = () => <Icon><path d="M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.01M2.500 8h.01M2.500 12h.01" /></Icon>;
const RouteIcon = () => <Icon><path d="M8 2.500V6L3.500 9v4M8 6l4.500 3v4M2 11.500l1.500 1.500L5 11.500M11 11.500l1.500 1.500 1.500-1.500" /></Icon>;
const LoopIcon = () => <Icon><path d="M4 6.500V5.500a2 2 0 0 1 2-2h6M10 1.500l2 2-2 2M12 9.500v1a2 2 0 0 1-2 2H4M6 14.500l-2-2 2-2" /></Icon>;
const StateIcon = () => <Icon><path d="M6 3c-2 0-1.500 1.500-1.500 3S3 8 3 8s1.500.500 1.500 2-.500 3 1.500 3M10 3c2 0 1.500 1.500 1.500 3S13 8 13 8s-1.500.500-1.500 2 .500 3-1.500 3" /></Icon>;

/** The icons of the kinds of steps. */
export const stepIcons: Record<string, () => React.JSX.Element> = {
  agent: AgentIcon, tool: ToolStepIcon, approve: ApproveIcon, parallel: ForkIcon, map: ListIcon, route: RouteIcon, loop: LoopIcon, set: StateIcon, steps: ListIcon,
};

export const MinusIcon = () => <Icon><path d="M3 8h10" /></Icon>;
export const FitIcon = () => <Icon><path d="M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10" /></Icon>;
