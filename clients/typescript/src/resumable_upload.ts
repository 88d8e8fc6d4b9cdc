import { bodyOf, errorFrom, isTransient } from "./attempts.js";
import { Backoff, retryAfterOf } from "./backoff.js";
import { ConnectionLostError, errorOf, problemOf, ProblemError } from "./problem.js";
import { fileIn, uploadsURL, uploadURL } from "./routes.js";
import type { Transport } from "./transport.js";

/** The size in bytes above which an upload is resumable, and the size of the bodies of its requests. */
export const partSize = 4 * 1024 * 1024;

// The API bounds the parts of an upload, and each request adds at least one.
const mostParts = 500;

// The longest time without an answer, in milliseconds. The API keeps what has arrived of a request, so a slow one that
// ends here is no loss. The answer to the last part follows when the file is scanned and stored.
const answerTime = 120_000;

// The longest time that the removal of an aborted upload takes, in milliseconds.
const removalTime = 10_000;

// A response to HEAD has no body with a problem: these are the codes of the route.
const headCodes: Record<number, string> = { 404: "unknown_upload", 422: "file_infected" };

/** A file, and how to upload it. */
export interface ResumableSource {
  baseUrl: string;
  /** Headers of every request. */
  headers: Record<string, string>;
  file: Blob;
  /** Name of the file. undefined = it has none. */
  name: string | undefined;
  /** Called with the bytes that the server has. */
  onProgress: ((sent: number, total: number) => void) | undefined;
  signal: AbortSignal | undefined;
}

/** The server refused a request of an upload for now. */
class Interruption extends Error {
  override readonly name = "Interruption";

  constructor(
    error: ProblemError,
    /** The pause that the server asks for, in milliseconds. */
    readonly pause: number,
  ) {
    super(error.message, { cause: error });
  }
}

/**
 * One upload by the tus protocol (https://tus.io/protocols/resumable-upload). Each request has one part of the file. After
 * a failure the upload continues with the first byte that the server does not have.
 */
export class ResumableUpload {
  private readonly backoff: Backoff;
  private readonly signal: AbortSignal;
  private readonly partSize: number;
  private url: string | undefined; // undefined = the upload has not begun
  private offset = 0; // number of bytes that the server has reported
  private fileId: string | undefined; // undefined = the upload is not complete

  constructor(
    private readonly transport: Transport,
    private readonly source: ResumableSource,
  ) {
    this.backoff = new Backoff(transport.retry, transport);
    this.signal = source.signal ?? new AbortController().signal;
    this.partSize = Math.max(partSize, Math.ceil(source.file.size / mostParts));
  }

  /**
   * Uploads the file. Resolves with its ID, or with undefined if the server has no resumable uploads. Rejects with a
   * ProblemError if the server refuses the upload, and with a ConnectionLostError if the attempts since the last byte that
   * the server has taken fail. An aborted upload is deleted in the background, and rejects with the reason of the signal.
   */
  async run(): Promise<string | undefined> {
    const { file, onProgress } = this.source;
    try {
      if (!(await this.attempt(() => this.begin()))) return undefined;
      while (this.fileId === undefined) {
        await this.attempt((isRetry) => this.advance(isRetry));
        onProgress?.(this.offset, file.size);
      }
      return this.fileId;
    } catch (error) {
      if (this.signal.aborted) void this.remove();
      throw error;
    }
  }

  // Repeats a step until the server gives a definite answer.
  private async attempt<Result>(step: (isRetry: boolean) => Promise<Result>): Promise<Result> {
    for (let lost: Error | undefined; ; ) {
      const pause = lost instanceof Interruption ? lost.pause : 0;
      if (lost && !(await this.backoff.wait(lost, pause, this.signal))) {
        throw new ConnectionLostError(`the connection was lost: ${lost.message}`, { cause: lost });
      }
      try {
        return await step(lost !== undefined);
      } catch (error) {
        this.signal.throwIfAborted();
        if (error instanceof ProblemError) throw error;
        lost = errorFrom(error);
      }
    }
  }

  // Creates the upload. Resolves with false if the server has no such route.
  private async begin(): Promise<boolean> {
    const { baseUrl, file } = this.source;
    const metadata = this.metadata();
    const headers = { "Upload-Length": String(file.size), ...(metadata !== "" && { "Upload-Metadata": metadata }) };
    try {
      const answered = await this.exchange("POST", uploadsURL(baseUrl), headers);
      const id = required(answered, "Location").split("/").at(-1)!;
      this.url = uploadURL(baseUrl, id); // a proxy may serve the routes at another path
    } catch (error) {
      if (error instanceof ProblemError && (error.status === 404 || error.status === 405)) return false;
      throw error;
    }
    this.backoff.connected();
    return true;
  }

  // The name and the type of the file as the header Upload-Metadata.
  private metadata(): string {
    const { name = "", file } = this.source;
    const pairs = Object.entries({ filename: name, filetype: file.type }).filter(([, value]) => value !== "");
    return pairs.map(([key, value]) => `${key} ${btoa(String.fromCodePoint(...new TextEncoder().encode(value)))}`).join(",");
  }

  // Sends the next part, after a failure from the byte on that the server asks for.
  private async advance(isRetry: boolean): Promise<void> {
    if (isRetry && this.take(await this.exchange("HEAD", this.url!))) return;
    const part = this.source.file.slice(this.offset, this.offset + this.partSize);
    const headers = { "Upload-Offset": String(this.offset), "Content-Type": "application/offset+octet-stream" };
    if (!this.take(await this.exchange("PATCH", this.url!, headers, part))) throw new Error("the server has taken no byte");
  }

  // Takes the offset and the file from a response. Reports whether the upload has advanced.
  private take(answered: Headers): boolean {
    const { file } = this.source;
    const text = required(answered, "Upload-Offset");
    const offset = Number(text);
    if (!(offset >= 0 && offset <= file.size)) throw malformed(`the Upload-Offset is ${text}, and the file has ${file.size} bytes`);
    if (offset === file.size) this.fileId = fileIn(required(answered, "Upload-File"));
    const hasAdvanced = offset > this.offset || this.fileId !== undefined;
    this.offset = offset;
    if (!hasAdvanced) return false;
    this.backoff.reset();
    this.backoff.connected();
    return true;
  }

  // Sends a request once, and returns the headers of the answer.
  private async exchange(method: string, url: string, headers: Record<string, string> = {}, body?: Blob): Promise<Headers> {
    const init = { method, headers: { ...this.source.headers, "Tus-Resumable": "1.0.0", ...headers }, ...(body && { body }) };
    const connection = await this.transport.open({ url, init, silence: answerTime }, this.signal);
    const { ok, status, headers: answered } = connection.response;
    const text = await bodyOf(connection);
    if (ok) return answered;
    const problem = problemOf(status, text);
    const code = method === "HEAD" ? (headCodes[status] ?? problem.code) : problem.code;
    const error = errorOf({ ...problem, code });
    // 409: an earlier request has arrived meanwhile.
    throw isTransient(status) || status === 409 ? new Interruption(error, retryAfterOf(answered)) : error;
  }

  // Deletes the upload. One that cannot be reached expires.
  private async remove(): Promise<void> {
    if (this.url === undefined) return;
    const init = { method: "DELETE", headers: { ...this.source.headers, "Tus-Resumable": "1.0.0" } };
    try {
      (await this.transport.open({ url: this.url, init }, AbortSignal.timeout(removalTime))).close();
    } catch {
      // The server deletes it after a day.
    }
  }
}

// Returns a header. A proxy that removes it is as a bad gateway.
function required(headers: Headers, name: string): string {
  const value = headers.get(name);
  if (value === null) throw malformed(`the response has no header ${name}: a proxy must pass it on, and expose it to pages of other origins`);
  return value;
}

const malformed = (detail: string) => new ProblemError({ status: 502, code: "http_502", detail });
