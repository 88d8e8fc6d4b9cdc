import type { ContentPart, PerdureClient } from "@perdure/client";

/** A file that the next message refers to. */
export interface Attachment {
  id: string;
  name: string;
  size: number;
  part: ContentPart;
  /** The address of an image in this page. `release` frees it. */
  preview?: string;
}

// The default of PERDURE_FILES_MAX_SIZE. A browser may lose the refusal of a larger file, because it still sends.
const mostBytes = 100 * 1024 * 1024;

/** Uploads files, and returns parts of a message that refer to them. Rejects with an error that names the file. */
export function uploadFiles(client: PerdureClient, files: readonly File[]): Promise<Attachment[]> {
  for (const file of files) {
    if (file.size > mostBytes) throw new Error(`${file.name} is too large: a file may have 100 MiB.`);
  }
  return Promise.all(files.map((file) => upload(client, file)));
}

async function upload(client: PerdureClient, file: File): Promise<Attachment> {
  try {
    const { id, url, name = file.name, type, size } = await client.uploadFile(file);
    const [family] = type.split("/");
    const kind = family === "image" || family === "audio" || family === "video" ? family : "document";
    const part: ContentPart = { type: kind, source: { type: "url", value: url, mimeType: type }, metadata: { filename: name } };
    return { id, name, size, part, ...(kind === "image" && { preview: URL.createObjectURL(file) }) };
  } catch (error) {
    throw new Error(`${file.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** Frees what the page keeps of files that were sent or removed. */
export function release(files: readonly Attachment[]): void {
  for (const { preview } of files) if (preview !== undefined) URL.revokeObjectURL(preview);
}
