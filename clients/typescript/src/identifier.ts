/** Returns a random ID. Unlike crypto.randomUUID, it also works on pages of insecure origins. */
export function newID(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
