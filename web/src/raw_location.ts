import { type BrowserLocationHook, type BrowserSearchHook, useBrowserLocation, useSearch } from "wouter/use-browser-location";

// wouter applies decodeURI to the path and to the query. That decodes some escapes and keeps others, so an ID with "/" or "%"
// would be lost. These hooks escape each "%" once more: routes see the path as the address has it.
const escape = (text: string) => text.replaceAll("%", "%25");

/** The path of the address, still encoded. */
export const useRawLocation: BrowserLocationHook = (options) => {
  const [path, navigate] = useBrowserLocation(options);
  return [escape(path), navigate];
};

/** The query of the address, still encoded. */
export const useRawSearch: BrowserSearchHook = (options) => escape(useSearch(options));

/** The IDs in the segments of a path. A segment that is not encoded correctly stays as it is. */
export function decoded<Params extends Record<string, string | undefined>>(params: Params): Params {
  const decode = (segment: string | undefined) => {
    try {
      return segment === undefined ? undefined : decodeURIComponent(segment);
    } catch {
      return segment;
    }
  };
  return Object.fromEntries(Object.entries(params).map(([name, segment]) => [name, decode(segment)])) as Params;
}
