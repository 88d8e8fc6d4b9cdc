/** What begins or ends a run. */
export interface Lifecycle {
  type: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR";
  runId?: string;
}

/** One frame of a stream of server-sent events, up to and without its blank line. */
export interface Frame {
  readonly text: string;
  /** The cursor behind this frame. */
  readonly id?: string;
  /** False for comments and for ids that stand alone. */
  readonly hasData: boolean;
  readonly lifecycle?: Lifecycle;
}

/** The most characters that a frame, or a prelude, may have. A thread's whole history comes in one frame. */
export const largest = 64 << 20;

/** A frame or a prelude is larger than this client takes. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";

  constructor(what: string) {
    super(`${what} has more than ${largest} characters`);
  }
}

/**
 * Cuts the bytes of one connection into whole frames. What a cut leaves behind is dropped with the
 * reader: the server sends it again. So each connection has a reader of its own, whose decoder knows
 * nothing of the half character that another one ended in.
 */
export class FrameReader {
  private readonly decoder = new TextDecoder();
  private text = "";

  /** The frames that are complete with these bytes. */
  read(bytes: Uint8Array): Frame[] {
    // A proxy may have made CR LF of LF. JSON has no CR of its own.
    const more = this.decoder.decode(bytes, { stream: true }).replaceAll("\r", "");
    const frames: Frame[] = [];
    let from = Math.max(0, this.text.length - 1); // the blank line may begin with the last character
    let start = 0;
    this.text += more;
    for (let end; (end = this.text.indexOf("\n\n", from)) >= 0; from = start = end + 2) {
      frames.push(parse(this.text.slice(start, end)));
    }
    this.text = this.text.slice(start);
    if (this.text.length > largest) throw new TooLargeError("a frame");
    return frames;
  }
}

function parse(text: string): Frame {
  const lines = text.split("\n");
  const id = lines.findLast((line) => line.startsWith("id:"));
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice("data:".length));
  const lifecycle = lifecycleOf(data.join("\n"));
  return {
    text,
    hasData: data.length > 0,
    ...(id !== undefined && { id: id.slice("id:".length).trimStart() }),
    ...(lifecycle && { lifecycle }),
  };
}

// Most events are not parsed here: the agent does that. Where the type stands in what the user or the
// model said, its quotes are escaped; where it stands in a state, the parsed event has another type.
function lifecycleOf(data: string): Lifecycle | undefined {
  if (!/"RUN_(STARTED|FINISHED|ERROR)"/.test(data)) return undefined;
  try {
    const { type, runId } = JSON.parse(data) as Lifecycle;
    return /^RUN_(STARTED|FINISHED|ERROR)$/.test(type) ? { type, runId: String(runId) } : undefined;
  } catch {
    return undefined; // the agent will say what is wrong with it
  }
}
