import type { ContentPart } from "@perdure/client";

/** A file that the next message carries. */
export interface Attachment {
  id: string;
  name: string;
  size: number;
  part: ContentPart;
}

// The API takes a request of 10 MiB. Base64 needs a third more than the file.
const mostBytes = 7_000_000;

/** Reads files as parts of a message. Rejects with an error that names the file that is too large. */
export async function readFiles(files: readonly File[], before: readonly Attachment[]): Promise<Attachment[]> {
  let sum = before.reduce((bytes, { size }) => bytes + size, 0);
  for (const file of files) {
    sum += file.size;
    if (sum > mostBytes) throw new Error(`${file.name} is too large: the files of a message may have 7 MB together.`);
  }
  return Promise.all(files.map(async (file) => ({ id: `${file.name} ${file.size} ${Math.random()}`, name: file.name, size: file.size, part: await partOf(file) })));
}

async function partOf(file: File): Promise<ContentPart> {
  const mimeType = file.type || "application/octet-stream";
  const [family] = mimeType.split("/");
  const type = family === "image" || family === "audio" || family === "video" ? family : "document";
  return { type, source: { type: "data", mimeType, value: await base64Of(file) }, metadata: { filename: file.name } };
}

function base64Of(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve((reader.result as string).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(new Error(`${file.name} cannot be read`));
    reader.readAsDataURL(file);
  });
}
