// The paths of the screens, without the path of the console. An ID is one encoded segment: it may contain a "/".
const segment = encodeURIComponent;

/** The paths of all screens. */
export const paths = {
  home: "/",
  newChat: (agent: string) => `/chat/${segment(agent)}`,
  threads: "/threads",
  thread: (thread: string) => `/threads/${segment(thread)}`,
  run: (thread: string, run: string) => `/threads/${segment(thread)}/runs/${segment(run)}`,
  inbox: "/inbox",
  approval: (thread: string, approval: string) => `/inbox/${segment(thread)}/${segment(approval)}`,
  agents: "/agents",
  newAgent: "/new-agent",
  agent: (agent: string) => `/agents/${segment(agent)}`,
  waits: "/waits",
  schedules: "/schedules",
  schedule: (schedule: string) => `/schedules/${segment(schedule)}`,
  usage: "/usage",
  system: "/system",
};
