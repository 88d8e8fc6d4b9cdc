/** An event that begins or ends a run. */
export interface Lifecycle {
  type: "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR";
  runId?: string;
}

/** One frame of a stream of server-sent events, without the blank line at its end. */
export interface Frame {
  readonly text: string;
  /** The cursor after this frame. */
  readonly id?: string;
  /** False for comments, and for frames with only an id. */
  readonly hasData: boolean;
  readonly lifecycle?: Lifecycle;
}

/** The most characters of a frame, or of frames without a cursor. One frame can have the whole history of a thread. */
export const largest = 64 << 20;

/** The error of a frame, or of frames without a cursor, with more than `largest` characters. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";

  constructor(what: string) {
    super(`${what} has more than ${largest} characters`);
  }
}

/**
 * Splits the bytes of one connection into complete frames. Each connection needs its own reader: an incomplete frame at
 * the end of a connection is dropped, because the server sends it again.
 */
export class FrameReader {
  private readonly decoder = new TextDecoder();
  private text = "";

  /** Returns the frames that these bytes complete. */
  read(bytes: Uint8Array): Frame[] {
    // A proxy may have replaced LF by CR LF. JSON contains no unescaped CR.
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

// Only events with the text of such a type are parsed; the agent parses all. In messages the quotes of that text are
// escaped. In a state they are not, but then the parsed event has another type.
function lifecycleOf(data: string): Lifecycle | undefined {
  if (!/"RUN_(STARTED|FINISHED|ERROR)"/.test(data)) return undefined;
  try {
    const { type, runId } = JSON.parse(data) as Lifecycle;
    return /^RUN_(STARTED|FINISHED|ERROR)$/.test(type) ? { type, runId: String(runId) } : undefined;
  } catch {
    return undefined; // the agent reports the error
  }
}
