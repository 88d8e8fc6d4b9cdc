import type { PerdureClient } from "../client.js";
import { type InboxFilter, InboxStore } from "./inbox_store.js";
import { ThreadStore, type ThreadStoreOptions } from "./thread_store.js";

const stores = new WeakMap<PerdureClient, Map<string, WeakRef<object>>>();

// Returns the store with this key, which exists as long as a component has it.
function storeOf<Store extends object>(client: PerdureClient, key: string, create: () => Store): Store {
  const known = stores.get(client) ?? new Map<string, WeakRef<object>>();
  stores.set(client, known);
  const existing = known.get(key)?.deref() as Store | undefined;
  if (existing) return existing;
  for (const [unused, store] of known) if (!store.deref()) known.delete(unused);
  const created = create();
  known.set(key, new WeakRef(created));
  return created;
}

/** Returns the store of a thread. Equal options return the same store, so that components share it. */
export function threadStore<State = unknown>(client: PerdureClient, options: ThreadStoreOptions): ThreadStore<State> {
  return storeOf(client, "thread " + JSON.stringify(options), () => new ThreadStore<State>(client, options));
}

/** Returns the store of the inbox. Equal filters return the same store. */
export function inboxStore(client: PerdureClient, filter: InboxFilter = {}): InboxStore {
  return storeOf(client, "inbox " + JSON.stringify(filter), () => new InboxStore(client, filter));
}
