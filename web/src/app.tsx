import { useInbox } from "@perdure/client/react";
import { Component, lazy, type ReactNode, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { I18nProvider, RouterProvider } from "react-aria-components";
import { Link, Route, Switch, useLocation } from "wouter";
import styles from "./app.module.css";
import { announce, Announcer } from "./components/announcer";
import { IconButton } from "./components/button";
import { Confirmation } from "./components/confirmation";
import { AgentIcon, ChatIcon, HourglassIcon, InboxIcon, KeyboardIcon, ScheduleIcon, SignOutIcon, SystemIcon, ThemeIcon, ThreadsIcon, UsageIcon } from "./components/icons";
import { Empty, Loading, Page } from "./components/page";
import { Problem } from "./components/problem";
import { ShortcutList, ShortcutListener, useShortcuts } from "./components/shortcuts";
import { paths } from "./paths";
import { InboxNotifier } from "./screens/inbox/notifier";
import { signOut, useClient } from "./session";
import { decoded } from "./raw_location";
import { consolePath, settings } from "./settings";
import { currentTheme, nextTheme } from "./theme";

const screens = {
  newChat: lazy(() => import("./screens/chat/new_chat")),
  thread: lazy(() => import("./screens/chat/thread")),
  inbox: lazy(() => import("./screens/inbox/inbox")),
  threads: lazy(() => import("./screens/threads/threads")),
  waits: lazy(() => import("./screens/waits/waits")),
  run: lazy(() => import("./screens/run/run")),
  agents: lazy(() => import("./screens/agents/agents")),
  newAgent: lazy(() => import("./screens/agents/new_agent")),
  agent: lazy(() => import("./screens/agents/agent")),
  schedules: lazy(() => import("./screens/schedules/schedules")),
  schedule: lazy(() => import("./screens/schedules/schedule")),
  usage: lazy(() => import("./screens/usage/usage")),
  system: lazy(() => import("./screens/system/system")),
};

const places = [
  { path: paths.home, label: "Chat", key: "c", icon: ChatIcon, isCurrent: (at: string) => at === "/" || at.startsWith("/chat/") },
  { path: paths.inbox, label: "Inbox", key: "i", icon: InboxIcon },
  { path: paths.waits, label: "Waiting", key: "w", icon: HourglassIcon },
  { path: paths.threads, label: "Threads", key: "t", icon: ThreadsIcon },
  { path: paths.agents, label: "Agents", key: "a", icon: AgentIcon, isCurrent: (at: string) => at === paths.agents || at.startsWith("/agents/") || at === paths.newAgent },
  { path: paths.schedules, label: "Schedules", key: "s", icon: ScheduleIcon },
  { path: paths.usage, label: "Usage", key: "u", icon: UsageIcon },
  { path: paths.system, label: "System", key: "y", icon: SystemIcon },
];

/** The console: its navigation, and the screen that the address selects. */
export function App() {
  const [, navigate] = useLocation();
  return (
    <I18nProvider>
      <RouterProvider navigate={navigate}>
        <ShortcutListener />
        <Announcer />
        <Confirmation />
        <InboxNotifier />
        <div className={styles.app}>
          <a className={styles.skip} href="#content">Skip to the content</a>
          <Navigation />
          <main id="content" className={styles.content} tabIndex={-1}>
            <Screens />
          </main>
        </div>
      </RouterProvider>
    </I18nProvider>
  );
}

function Navigation() {
  const [location, navigate] = useLocation();
  const [isListOpen, setListOpen] = useState(false);
  const [theme, setTheme] = useState(currentTheme());
  const { approvals } = useInbox(useClient());
  const changeTheme = () => {
    const next = nextTheme();
    setTheme(next);
    announce(`Theme: ${next}`);
  };
  useShortcuts("Everywhere", [
    ...places.map(({ path, label, key }) => ({ keys: `g ${key}`, label: `Go to ${label}`, run: () => navigate(path) })),
    { keys: "?", label: "Show this list", run: () => setListOpen(true) },
  ]);
  return (
    <header className={styles.sidebar}>
      <Link href={paths.home} className={styles.brand} aria-label="Perdure">
        <img src={`${consolePath}/icon.svg`} alt="" width="22" height="22" />
        <span>Perdure</span>
      </Link>
      <nav aria-label="Main">
        <ul className={styles.places}>
          {places.map(({ path, label, icon: Icon, isCurrent = (at: string) => at === path || at.startsWith(path + "/") }) => (
            <li key={path}>
              <Link href={path} className={styles.place} aria-current={isCurrent(location) ? "page" : undefined}>
                <Icon />
                <span>{label}</span>
                {path === paths.inbox && approvals.length > 0 && (
                  <span className={styles.count}>
                    {approvals.length > 99 ? "99+" : approvals.length}
                    <span className="visually-hidden"> open</span>
                  </span>
                )}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className={styles.tools}>
        <IconButton label="Keyboard shortcuts" onPress={() => setListOpen(true)}><KeyboardIcon /></IconButton>
        {settings.auth !== "none" && <IconButton label="Sign out" onPress={() => void signOut()}><SignOutIcon /></IconButton>}
        <IconButton label={`Theme: ${theme}`} onPress={changeTheme}><ThemeIcon /></IconButton>
      </div>
      <ShortcutList isOpen={isListOpen} onClose={() => setListOpen(false)} />
    </header>
  );
}

// The inbox is one screen: its list stays while another approval is shown.
const screenOf = (location: string) => (location.startsWith(paths.inbox) ? paths.inbox : location);

function Screens() {
  const [location] = useLocation();
  const screen = screenOf(location);
  const isFirst = useRef(true);
  // After a navigation, the keyboard and screen readers begin at the new screen, or at what it gives the focus to itself.
  useEffect(() => {
    const content = document.getElementById("content");
    if (!isFirst.current && !content?.contains(document.activeElement)) content?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [screen]);
  const unknown = useMemo(
    () => (
      <Page title="No such page">
        <Empty title="This address has no page"><Link href={paths.home}>Go to the chat</Link></Empty>
      </Page>
    ),
    [],
  );
  return (
    <Boundary key={screen}>
      <Suspense fallback={<Loading />}>
        <Switch>
          <Route path="/">{() => <screens.newChat />}</Route>
          <Route path="/chat/:agent">{(params) => <screens.newChat {...decoded(params)} />}</Route>
          <Route path="/inbox">{() => <screens.inbox />}</Route>
          <Route path="/inbox/:thread/:approval">{(params) => <screens.inbox {...decoded(params)} />}</Route>
          <Route path="/waits">{() => <screens.waits />}</Route>
          <Route path="/threads">{() => <screens.threads />}</Route>
          <Route path="/threads/:thread">{(params) => <screens.thread {...decoded(params)} />}</Route>
          <Route path="/threads/:thread/runs/:run">{(params) => <screens.run {...decoded(params)} />}</Route>
          <Route path="/agents">{() => <screens.agents />}</Route>
          <Route path="/new-agent">{() => <screens.newAgent />}</Route>
          <Route path="/agents/:agent/*?">{(params) => <screens.agent {...decoded(params)} />}</Route>
          <Route path="/schedules">{() => <screens.schedules />}</Route>
          <Route path="/schedules/:schedule">{(params) => <screens.schedule {...decoded(params)} />}</Route>
          <Route path="/usage">{() => <screens.usage />}</Route>
          <Route path="/system">{() => <screens.system />}</Route>
          <Route>{unknown}</Route>
        </Switch>
      </Suspense>
    </Boundary>
  );
}

/** Shows what a screen threw, instead of an empty page. */
class Boundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <Page title="Error">
        <Problem error={this.state.error} onRetry={() => location.reload()} />
      </Page>
    );
  }
}
