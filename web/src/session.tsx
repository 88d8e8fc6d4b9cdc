import { PerdureClient, ProblemError } from "@perdure/client";
import { MutationCache, notifyManager, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createContext, type ReactNode, use, useMemo, useSyncExternalStore } from "react";
import { apiURL, settings } from "./settings";
import { SignIn } from "./sign_in";

const storageKey = "perdure.token";

// The token of this tab, whether the page needs credentials, and whether the API refuses those that it has accepted before.
const credentials = {
  token: sessionStorage.getItem(storageKey) ?? undefined,
  isMissing: settings.auth === "token" && sessionStorage.getItem(storageKey) === null,
  hasEnded: false,
  wasAccepted: false,
  listeners: new Set<() => void>(),
};

function change(next: { token?: string | undefined; isMissing: boolean; hasEnded?: boolean }): void {
  Object.assign(credentials, { hasEnded: false, wasAccepted: false, ...next });
  if (credentials.token === undefined) sessionStorage.removeItem(storageKey);
  else sessionStorage.setItem(storageKey, credentials.token);
  for (const listener of credentials.listeners) listener();
}

function subscribe(listener: () => void): () => void {
  credentials.listeners.add(listener);
  return () => credentials.listeners.delete(listener);
}

/** Ends the session, or forgets the token of this tab. Without either, it must not be called. */
export async function signOut(): Promise<void> {
  // The redirection leads to the provider, which the policy of the page does not allow to be loaded.
  if (settings.auth === "session") await fetch("/auth/logout", { method: "POST", redirect: "manual" });
  queries.clear();
  change({ token: undefined, isMissing: true });
}

/** Tells the page that the API answered 401: it asks for credentials again. */
function refuse(error: unknown): void {
  // Several requests may be refused at once.
  if (!(error instanceof ProblemError) || error.status !== 401 || credentials.isMissing) return;
  change({ token: undefined, isMissing: true, hasEnded: credentials.wasAccepted || credentials.token !== undefined || error.code === "session_ended" });
}

// Before the next key: a key that is pressed twice sends one command.
notifyManager.setScheduler(queueMicrotask);

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: refuse, onSuccess: () => void (credentials.wasAccepted = true) }),
  mutationCache: new MutationCache({ onError: refuse }),
  // The client repeats requests itself. A browser without a network reaches a server on its own machine.
  defaultOptions: {
    queries: { networkMode: "always", retry: false, staleTime: 5_000, refetchOnWindowFocus: true, refetchOnReconnect: true },
    mutations: { networkMode: "always", retry: false },
  },
});

const ClientContext = createContext<PerdureClient | undefined>(undefined);

/** The client of the API, with the credentials of this page. */
export function useClient(): PerdureClient {
  const client = use(ClientContext);
  if (!client) throw new Error("useClient needs a SessionProvider");
  return client;
}

/** Gives the page its client, and asks for credentials where the API needs them. */
export function SessionProvider({ children }: { children: ReactNode }) {
  const token = useSyncExternalStore(subscribe, () => credentials.token);
  const isMissing = useSyncExternalStore(subscribe, () => credentials.isMissing);
  const client = useMemo(() => new PerdureClient({ baseUrl: apiURL, ...(token !== undefined && { token }) }), [token]);
  const enter = (entered: string) => {
    queries.clear();
    change({ token: entered, isMissing: false });
  };
  if (isMissing) return <SignIn hasEnded={credentials.hasEnded} onToken={enter} />;
  return (
    <QueryClientProvider client={queries}>
      <ClientContext value={client}>{children}</ClientContext>
    </QueryClientProvider>
  );
}
