/** Returns the ID of the element of an entry in the transcript. */
export const elementID = (key: string) => `entry ${key}`.replaceAll(/\s+/g, "-");
