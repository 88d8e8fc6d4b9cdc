import { type ContentPart, type PerdureClient, ProblemError, type UploadOptions } from "@perdure/client";

/** A file that the next message refers to. */
export interface Attachment {
  id: string;
  name: string;
  size: number;
  part: ContentPart;
  /** The file, if it is an image. */
  image?: File;
}

/**
 * Uploads files, and returns parts of a message that refer to them. Calls onProgress with the bytes of a file that the
 * server has. Rejects with an error that names the file, also when the signal is aborted, and then ends the other uploads.
 */
export async function uploadFiles(client: PerdureClient, files: readonly File[], signal: AbortSignal, onProgress: (file: File, sent: number) => void): Promise<Attachment[]> {
  const abort = new AbortController();
  const uploads = AbortSignal.any([signal, abort.signal]);
  try {
    return await Promise.all(files.map((file) => upload(client, file, { signal: uploads, onProgress: (sent) => onProgress(file, sent) })));
  } finally {
    abort.abort(); // without effect on uploads that have ended
  }
}

async function upload(client: PerdureClient, file: File, options: UploadOptions): Promise<Attachment> {
  try {
    const { id, url, name = file.name, type, size } = await client.uploadFile(file, options);
    const [family] = type.split("/");
    const kind = family === "image" || family === "audio" || family === "video" ? family : "document";
    const part: ContentPart = { type: kind, source: { type: "url", value: url, mimeType: type }, metadata: { filename: name } };
    return { id, name, size, part, ...(kind === "image" && { image: file }) };
  } catch (error) {
    if (error instanceof ProblemError && error.code === "too_large") throw new Error(`${file.name} is too large: ${error.problem.detail}.`, { cause: error });
    throw new Error(`${file.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
