import { HttpOnlyError, MovedError } from "./connection.js";
import type { Exchange, OpenRequest, Receiver } from "./exchange.js";
import { type Problem, ProblemError } from "./problem.js";
import { isLast, type RequestFrame, type ResponseFrame } from "./socket_frames.js";

/** What an exchange needs from the browser. */
export interface TabScope {
  locks: Pick<LockManager, "request">;
  channel(name: string): BroadcastChannel;
}

/** An exchange that can give its requests back. */
interface Pool extends Exchange {
  /** Closes all sockets. The requests are lost with the error. */
  close(error: Error): void;
}

/** A message to all tabs: a tab looks for the leader, or the leader announces itself. */
type Announcement = { type: "tab"; tab: string; session: number } | { type: "leader"; leader: string };

/** A tab and its leader from a welcome to the next one. Messages of an earlier session are ignored. */
interface Session {
  leader: string;
  session: number;
}

/** A message of a tab to the leader. */
type TabMessage = Session &
  ({ type: "open"; id: number; frame: RequestFrame } | { type: "consume"; id: number; size: number } | { type: "close"; id: number } | { type: "ping" });

/** A message of the leader to a tab. */
type LeaderMessage = Session &
  (
    | { type: "welcome" }
    | { type: "goodbye" }
    | { type: "pong" }
    | { type: "frame"; id: number; frame: ResponseFrame; size: number }
    | ({ type: "lost"; id: number } & Loss)
  );

/** An error of a lost request, in the form of a message. */
interface Loss {
  message: string;
  kind: "moved" | "httpOnly" | "other";
  problem: Problem | undefined;
}

type Body<Message> = Message extends unknown ? Omit<Message, keyof Session> : never;

/** How often a tab with open requests pings the leader, in milliseconds. The leader may take half of it to respond. */
const pingInterval = 10_000;

/** The tabs that miss the leader steal its lock at different times within this period, in milliseconds. */
const stealJitter = 3_000;

/** A tab reports the characters that it has taken when they are more than this. */
const reportSize = 256 << 10;

const movedError = () => new MovedError("another tab holds the WebSockets");

/**
 * The exchange of all tabs of an origin that have the same server and credentials. The tab that holds the lock `name` is
 * the leader and has the sockets. The other tabs send it their requests, each over a channel of its own. When the leader
 * closes, or does not respond, another tab becomes the leader. Every request is then lost with a MovedError, so that its
 * reader sends it again with its cursor.
 *
 * The order of the messages in a channel is the order of the frames. A message is lost only together with its session.
 */
export class SharedExchange implements Exchange {
  private readonly tab = crypto.randomUUID();
  private readonly announcements: BroadcastChannel;
  private candidacy = new AbortController();
  private session = 0;
  private role: Leader | Follower;

  constructor(
    private readonly name: string,
    private readonly scope: TabScope,
    private readonly newPool: () => Pool,
  ) {
    this.announcements = scope.channel(name);
    this.announcements.onmessage = ({ data }: MessageEvent<Announcement>) => this.hear(data);
    this.role = this.newFollower();
    // The leader waits for this lock to learn that the tab has closed, however it closed.
    const held = () => {
      if (this.role instanceof Follower) this.seekLeader(this.role);
      return forever;
    };
    scope.locks.request(channelOf(name, this.tab), held).catch(() => {}); // stand handles a page that may not use locks
    this.stand();
  }

  open(frame: RequestFrame, receiver: Receiver): OpenRequest {
    return this.role.open(frame, receiver);
  }

  // Waits until no other tab is the leader.
  private stand(): void {
    const { signal } = (this.candidacy = new AbortController());
    this.scope.locks.request(this.name, { signal }, this.lead).catch((error: DOMException) => {
      if (signal.aborted) return;
      if (error.name === "AbortError") this.stepDown();
      else void this.lead(); // a page with an opaque origin may not use locks, and shares nothing with other pages
    });
  }

  // Becomes the leader in place of a tab that does not respond.
  private readonly steal = (): void => {
    this.candidacy.abort();
    this.scope.locks.request(this.name, { steal: true }, this.lead).catch(this.stepDown);
  };

  // Leads until the tab closes, or another tab steals the lock.
  private readonly lead = (): Promise<never> => {
    const leader = new Leader(this.name, this.scope, this.newPool());
    this.change(leader);
    this.announcements.postMessage({ type: "leader", leader: leader.id } satisfies Announcement);
    return forever;
  };

  private readonly stepDown = (): void => {
    const follower = this.newFollower();
    this.change(follower);
    this.seekLeader(follower);
    this.stand();
  };

  private change(next: Leader | Follower): void {
    const previous = this.role;
    this.role = next;
    previous.end();
  }

  private newFollower(): Follower {
    return new Follower(this.scope.channel(channelOf(this.name, this.tab)), this.steal, (follower) => this.seekLeader(follower));
  }

  private seekLeader(follower: Follower): void {
    const session = (follower.session = ++this.session);
    this.announcements.postMessage({ type: "tab", tab: this.tab, session } satisfies Announcement);
  }

  private hear(announcement: Announcement): void {
    if (announcement.type === "tab" && this.role instanceof Leader) this.role.serve(announcement.tab, announcement.session);
    if (announcement.type === "leader" && this.role instanceof Follower) this.role.leave(announcement.leader);
  }
}

const channelOf = (name: string, tab: string) => `${name} ${tab}`;

const forever = new Promise<never>(() => {});

/** The tab with the sockets. It sends the requests of all tabs. */
class Leader implements Exchange {
  readonly id = crypto.randomUUID();
  private readonly tabs = new Map<string, ServedTab>();
  private readonly ended = new AbortController();

  constructor(
    private readonly name: string,
    private readonly scope: TabScope,
    private readonly pool: Pool,
  ) {}

  open(frame: RequestFrame, receiver: Receiver): OpenRequest {
    return this.pool.open(frame, receiver);
  }

  /** Serves a tab in a new session until the tab closes. */
  serve(tab: string, session: number): void {
    const known = this.tabs.get(tab);
    if (known) return known.begin(session);
    const name = channelOf(this.name, tab);
    const served = new ServedTab(this.scope.channel(name), this.pool, this.id);
    this.tabs.set(tab, served);
    served.begin(session);
    const close = () => {
      this.tabs.delete(tab);
      served.close();
    };
    this.scope.locks.request(name, { signal: this.ended.signal }, close).catch(() => {}); // the leader has ended
  }

  /** Loses the requests of all tabs. */
  end(): void {
    this.ended.abort();
    for (const tab of this.tabs.values()) tab.dismiss();
    this.tabs.clear();
    this.pool.close(movedError());
  }
}

/** A tab that a leader serves, with its open requests. */
class ServedTab {
  private readonly requests = new Map<number, OpenRequest>();
  private session = 0;

  constructor(
    private readonly channel: BroadcastChannel,
    private readonly exchange: Exchange,
    private readonly leader: string,
  ) {
    channel.onmessage = ({ data }: MessageEvent<TabMessage>) => {
      if (data.leader === leader && data.session === this.session) this.receive(data);
    };
  }

  begin(session: number): void {
    if (session <= this.session) return;
    this.closeRequests();
    this.session = session;
    this.post({ type: "welcome" });
  }

  /** Tells the tab to look for another leader. */
  dismiss(): void {
    this.post({ type: "goodbye" });
    this.close();
  }

  close(): void {
    this.closeRequests();
    this.channel.close();
    this.channel.onmessage = null;
  }

  private closeRequests(): void {
    const requests = [...this.requests.values()];
    this.requests.clear();
    for (const request of requests) request.close();
  }

  private receive(message: TabMessage): void {
    switch (message.type) {
      case "ping":
        return this.post({ type: "pong" });
      case "open":
        return this.open(message.id, message.frame);
      case "consume":
        return this.requests.get(message.id)?.consume(message.size);
      case "close":
        this.requests.get(message.id)?.close();
        this.requests.delete(message.id);
    }
  }

  private open(id: number, frame: RequestFrame): void {
    const receiver: Receiver = {
      receive: (response, size) => {
        if (isLast(frame.type, response)) this.requests.delete(id);
        this.post({ type: "frame", id, frame: response, size });
      },
      lose: (error) => {
        if (!this.requests.delete(id)) return;
        this.post({ type: "lost", id, ...lossOf(error) });
      },
    };
    this.requests.set(id, this.exchange.open(frame, receiver));
  }

  private post(body: Body<LeaderMessage>): void {
    this.channel.postMessage({ ...body, leader: this.leader, session: this.session });
  }
}

function lossOf(error: Error): Loss {
  const kind = error instanceof MovedError ? "moved" : error instanceof HttpOnlyError ? "httpOnly" : "other";
  return { message: error.message, kind, problem: error instanceof ProblemError ? error.problem : undefined };
}

function errorIn({ message, kind, problem }: Loss): Error {
  if (problem) return new ProblemError(problem);
  if (kind === "httpOnly") return new HttpOnlyError();
  return kind === "moved" ? new MovedError(message) : new Error(message);
}

/** A tab without sockets. It sends its requests to the leader. */
class Follower implements Exchange {
  /** The session that the tab has announced. */
  session = 0;
  private leader: string | undefined; // undefined = none has welcomed this session
  private expected: string | undefined; // the last leader that has announced itself
  private readonly requests = new Map<number, { frame: RequestFrame; receiver: Receiver }>();
  private last = 0;
  private waitsSince = 0; // when a ping without a response was sent, or a leader was sought; 0 = none
  private tickedAt = 0;
  private ticker: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly channel: BroadcastChannel,
    private readonly steal: () => void,
    private readonly seekLeader: (follower: Follower) => void,
  ) {
    channel.onmessage = ({ data }: MessageEvent<LeaderMessage>) => this.receive(data);
  }

  open(frame: RequestFrame, receiver: Receiver): OpenRequest {
    const id = ++this.last;
    this.requests.set(id, { frame, receiver });
    this.post({ type: "open", id, frame });
    this.watch();
    let taken = 0;
    return {
      consume: (size) => {
        taken += size;
        if (taken < reportSize || !this.requests.has(id)) return;
        this.post({ type: "consume", id, size: taken });
        taken = 0;
      },
      close: () => {
        if (this.requests.delete(id)) this.post({ type: "close", id });
      },
    };
  }

  /** Loses the requests, and looks for the leader: the one that has announced itself, or any. */
  leave(leader?: string): void {
    this.expected = leader;
    this.seekLeader(this);
    this.loseRequests();
  }

  end(): void {
    clearInterval(this.ticker);
    this.leader = undefined;
    this.channel.onmessage = null;
    this.channel.close();
    this.loseRequests();
  }

  private loseRequests(): void {
    this.leader = undefined;
    this.waitsSince = 0;
    const requests = [...this.requests.values()];
    this.requests.clear();
    for (const { receiver } of requests) receiver.lose(movedError());
  }

  // Without a leader nothing is sent. A leader that welcomes the tab is sent all open requests.
  private post(body: Body<TabMessage>): void {
    if (this.leader !== undefined) this.channel.postMessage({ ...body, leader: this.leader, session: this.session });
  }

  private receive(message: LeaderMessage): void {
    if (message.session !== this.session || message.leader !== (this.leader ?? this.expected ?? message.leader)) return;
    if (message.type === "goodbye") return this.leave();
    if (message.type === "welcome") {
      this.leader = message.leader;
      for (const [id, { frame }] of this.requests) this.post({ type: "open", id, frame });
    }
    this.waitsSince = 0;
    if (message.type !== "frame" && message.type !== "lost") return;
    const request = this.requests.get(message.id);
    if (!request) return;
    if (message.type === "lost") {
      this.requests.delete(message.id);
      request.receiver.lose(errorIn(message));
    } else {
      if (isLast(request.frame.type, message.frame)) this.requests.delete(message.id);
      request.receiver.receive(message.frame, message.size);
    }
  }

  // Pings the leader while requests are open. A leader that does not respond is suspended, and would keep the lock.
  private watch(): void {
    if (this.ticker !== undefined) return;
    this.tickedAt = Date.now();
    this.ping();
    this.ticker = setInterval(() => {
      const now = Date.now();
      const wasSuspended = now - this.tickedAt > 3 * pingInterval; // this tab itself, for example while the computer slept
      this.tickedAt = now;
      if (this.requests.size === 0) {
        clearInterval(this.ticker);
        this.ticker = undefined;
        this.waitsSince = 0;
      } else if (this.waitsSince === 0 || wasSuspended) this.ping();
      else if (now - this.waitsSince >= pingInterval / 2) this.miss(this.waitsSince);
    }, pingInterval);
  }

  private ping(): void {
    this.waitsSince = Date.now();
    this.post({ type: "ping" });
  }

  private miss(since: number): void {
    setTimeout(() => this.waitsSince === since && this.steal(), Math.random() * stealJitter);
  }
}
