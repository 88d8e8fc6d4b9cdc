/** How long a store continues to read after its last listener has left, in milliseconds. */
const lingerTime = 1_000;

/**
 * A store with an immutable snapshot, in the form of React's useSyncExternalStore. It reads from the server while it has
 * listeners. Changes of one frame of the screen are one new snapshot.
 */
export abstract class ExternalStore<Snapshot> {
  private readonly listeners = new Set<() => void>();
  private current: Snapshot;
  private isScheduled = false;
  private reading: AbortController | undefined;
  private lingering: ReturnType<typeof setTimeout> | undefined;

  protected constructor(private readonly initial: Snapshot) {
    this.current = initial;
  }

  /** Calls the listener after each change, until the returned function is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    const entry = () => listener(); // the same listener may be subscribed twice
    this.listeners.add(entry);
    clearTimeout(this.lingering);
    if (!this.reading) this.restart();
    return () => {
      if (this.listeners.delete(entry) && this.listeners.size === 0) this.lingering = setTimeout(() => this.stop(), lingerTime);
    };
  };

  /** Returns the snapshot. Its parts that have not changed are identical to those of the last one. */
  readonly getSnapshot = (): Snapshot => this.current;

  /** Returns the snapshot for rendering on a server. */
  readonly getServerSnapshot = (): Snapshot => this.initial;

  /** Reads from the server until the signal is aborted. Must not reject. */
  protected abstract read(signal: AbortSignal): Promise<void>;

  /** Returns the next snapshot, or the previous one if nothing has changed. */
  protected abstract compute(previous: Snapshot): Snapshot;

  /** Reads again from the beginning. */
  protected restart(): void {
    this.reading?.abort();
    this.reading = new AbortController();
    void this.read(this.reading.signal);
  }

  /** Stops reading. */
  protected stop(): void {
    this.reading?.abort();
    this.reading = undefined;
  }

  /** Computes the next snapshot with the next frame of the screen. */
  protected readonly invalidate = (): void => {
    if (this.isScheduled) return;
    this.isScheduled = true;
    const isVisible = typeof requestAnimationFrame === "function" && typeof document !== "undefined" && document.visibilityState === "visible";
    if (isVisible) requestAnimationFrame(this.flush);
    else setTimeout(this.flush, 0);
  };

  private readonly flush = (): void => {
    this.isScheduled = false;
    const next = this.compute(this.current);
    if (next === this.current) return;
    this.current = next;
    for (const listener of [...this.listeners]) listener();
  };
}
