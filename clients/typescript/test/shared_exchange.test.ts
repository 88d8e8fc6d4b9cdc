import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { MovedError } from "../dist/connection.js";
import type { Exchange, Receiver } from "../dist/exchange.js";
import { SharedExchange } from "../dist/shared_exchange.js";
import type { RequestFrame, ResponseFrame } from "../dist/socket_frames.js";
import { settled } from "./event_log.js";

type Request = { frame: RequestFrame; receiver: Receiver; isOpen: boolean; consumed: number };

/** A browser with tabs that share locks and channels. */
class Browser {
  readonly tabs: Tab[] = [];
  private readonly queues = new Map<string, { tab: Tab; grant: () => void; fail: (error: Error) => void }[]>();
  readonly channels = new Set<Channel>();

  open(mayLock = true): Tab {
    const tab = new Tab(this, mayLock);
    this.tabs.push(tab);
    return tab;
  }

  /** Ends a tab as a crash of its process does: nothing of it runs again. */
  kill(tab: Tab): void {
    tab.isAlive = false;
    for (const queue of this.queues.values()) {
      const wasHolder = queue[0]?.tab === tab;
      queue.splice(0, queue.length, ...queue.filter((entry) => entry.tab !== tab));
      if (wasHolder) queue[0]?.grant();
    }
  }

  request(tab: Tab, name: string, options: LockOptions, callback: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const queue = this.queues.get(name) ?? [];
      this.queues.set(name, queue);
      const release = () => {
        queue.splice(queue.indexOf(entry), 1);
        queue[0]?.grant();
      };
      const entry = {
        tab,
        grant: () => setImmediate(() => tab.run(() => void Promise.resolve(callback()).then((value) => (release(), resolve(value))))),
        fail: (error: Error) => tab.run(() => reject(error)),
      };
      if (options.steal) queue.shift()?.fail(new DOMException("stolen", "AbortError"));
      if (options.steal) queue.unshift(entry);
      else queue.push(entry);
      if (queue[0] === entry) entry.grant();
      options.signal?.addEventListener("abort", () => {
        if (queue[0] === entry || !queue.includes(entry)) return;
        queue.splice(queue.indexOf(entry), 1);
        reject(options.signal!.reason);
      });
    });
  }
}

class Channel {
  onmessage: ((event: MessageEvent) => void) | null = null;

  constructor(
    private readonly browser: Browser,
    private readonly tab: Tab,
    private readonly name: string,
  ) {
    browser.channels.add(this);
  }

  postMessage(message: unknown): void {
    if (!this.browser.channels.has(this)) throw new DOMException("closed", "InvalidStateError");
    const data = structuredClone(message);
    for (const other of this.browser.channels) {
      if (other === this || other.name !== this.name) continue;
      setImmediate(() => {
        if (this.browser.channels.has(other)) other.tab.run(() => other.onmessage?.({ data } as MessageEvent));
      });
    }
  }

  close(): void {
    this.browser.channels.delete(this);
  }
}

/** A tab with its exchange, and the requests that its own sockets have received. */
class Tab {
  isAlive = true;
  private suspended: (() => void)[] | undefined;
  readonly requests: Request[] = [];
  readonly exchange: SharedExchange;

  constructor(browser: Browser, mayLock = true) {
    const locks = {
      request: (name: string, ...rest: unknown[]) => {
        if (!mayLock) return Promise.reject(new DOMException("opaque origin", "SecurityError"));
        const callback = rest.pop() as () => unknown;
        return browser.request(this, name, (rest[0] as LockOptions | undefined) ?? {}, callback);
      },
    };
    this.exchange = new SharedExchange(
      "perdure",
      { locks: locks as unknown as LockManager, channel: (name) => new Channel(browser, this, name) as unknown as BroadcastChannel },
      () => this.newPool(),
    );
  }

  get open(): Request[] {
    return this.requests.filter(({ isOpen }) => isOpen);
  }

  run(task: () => void): void {
    if (!this.isAlive) return;
    if (this.suspended) this.suspended.push(task);
    else task();
  }

  suspend(): void {
    this.suspended = [];
  }

  resume(): void {
    const tasks = this.suspended ?? [];
    this.suspended = undefined;
    tasks.forEach((task) => task());
  }

  private newPool(): Exchange & { close(error: Error): void } {
    return {
      open: (frame, receiver) => {
        const request: Request = { frame, receiver, isOpen: true, consumed: 0 };
        this.requests.push(request);
        return { consume: (size) => void (request.consumed += size), close: () => void (request.isOpen = false) };
      },
      close: (error) => {
        for (const request of this.open) {
          request.isOpen = false;
          request.receiver.lose(error);
        }
      },
    };
  }
}

const subscribe = (threadId: string): RequestFrame => ({ type: "subscribe", threadId });

// Sends a request of a tab, and collects its responses and its loss.
function send(tab: Tab, threadId: string) {
  const frames: ResponseFrame[] = [];
  const state: { frames: ResponseFrame[]; lost: Error | undefined; request: ReturnType<Exchange["open"]> } = {
    frames,
    lost: undefined,
    request: tab.exchange.open(subscribe(threadId), { receive: (frame) => void frames.push(frame), lose: (error) => void (state.lost = error) }),
  };
  return state;
}

const event = (cursor: number): ResponseFrame => ({ type: "event", cursor: String(cursor), event: { type: "CUSTOM" } });

beforeEach(() => mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] }));
afterEach(() => mock.timers.reset());

test("the first tab has the sockets, and the others receive their frames in order", async () => {
  const browser = new Browser();
  const [leader, follower] = [browser.open(), browser.open()];
  await settled();
  const sent = send(follower, "t-1");
  await settled();
  assert.deepEqual(leader.open.map(({ frame }) => frame), [subscribe("t-1")]);
  for (const n of [1, 2, 3]) leader.open[0]!.receiver.receive(event(n), 10);
  await settled();
  assert.deepEqual(sent.frames, [event(1), event(2), event(3)]);
  assert.equal(follower.requests.length, 0);
});

test("a tab reports what it has taken, so that the leader can bound what it sends", async () => {
  const browser = new Browser();
  const [leader, follower] = [browser.open(), browser.open()];
  await settled();
  const sent = send(follower, "t-1");
  await settled();
  sent.request.consume(100);
  sent.request.consume(300 << 10);
  await settled();
  assert.equal(leader.open[0]!.consumed, 100 + (300 << 10));
});

test("a request that its tab closes, and the requests of a tab that dies, end on the leader", async () => {
  const browser = new Browser();
  const [leader, one, two] = [browser.open(), browser.open(), browser.open()];
  await settled();
  const first = send(one, "t-1");
  send(two, "t-2");
  await settled();
  assert.equal(leader.open.length, 2);
  first.request.close();
  await settled();
  assert.deepEqual(leader.open.map(({ frame }) => frame), [subscribe("t-2")]);
  browser.kill(two);
  await settled();
  assert.equal(leader.open.length, 0);
});

test("when the leader dies, the next tab has the sockets, and requests move to it", async () => {
  const browser = new Browser();
  const [leader, one, two] = [browser.open(), browser.open(), browser.open()];
  await settled();
  const sent = [send(one, "t-1"), send(two, "t-2")];
  await settled();
  browser.kill(leader);
  await settled();
  for (const { lost } of sent) assert.ok(lost instanceof MovedError);
  const again = [send(one, "t-1"), send(two, "t-2")];
  await settled();
  assert.deepEqual(one.open.map(({ frame }) => frame), [subscribe("t-1"), subscribe("t-2")]);
  one.open[1]!.receiver.receive(event(1), 10);
  await settled();
  assert.deepEqual([again[0]!.frames, again[1]!.frames], [[], [event(1)]]);
});

test("a request that is sent while there is no leader reaches the next one", async () => {
  const browser = new Browser();
  const [leader, one, two] = [browser.open(), browser.open(), browser.open()];
  await settled();
  browser.kill(leader);
  const sent = send(two, "t-2");
  await settled();
  if (sent.lost) send(two, "t-2");
  await settled();
  assert.deepEqual(one.open.map(({ frame }) => frame), [subscribe("t-2")]);
});

test("a tab takes over from a leader that is suspended, and ignores it afterwards", async (t) => {
  t.mock.method(Math, "random", () => 0.5);
  const browser = new Browser();
  const [leader, follower] = [browser.open(), browser.open()];
  await settled();
  const sent = send(follower, "t-1");
  await settled();
  const [stale] = leader.open;
  leader.suspend();
  for (let i = 0; i < 4; i++) {
    mock.timers.tick(10_000);
    await settled();
  }
  assert.ok(sent.lost instanceof MovedError);
  const again = send(follower, "t-1");
  await settled();
  assert.equal(follower.open.length, 1);
  stale!.receiver.receive(event(7), 10); // before the former leader knows
  follower.open[0]!.receiver.receive(event(1), 10);
  await settled();
  assert.deepEqual(again.frames, [event(1)]);
  leader.resume();
  await settled();
  assert.equal(leader.open.length, 0);
  send(leader, "t-3");
  await settled();
  assert.deepEqual(follower.open.map(({ frame }) => frame), [subscribe("t-1"), subscribe("t-3")]);
});

test("a page that may not use locks has its own sockets", async () => {
  const tab = new Browser().open(false);
  await settled();
  send(tab, "t-1");
  assert.deepEqual(tab.open.map(({ frame }) => frame), [subscribe("t-1")]);
});
