import { PerdureClient, ProblemError } from "@perdure/client";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createContext, type FormEvent, type ReactNode, use, useMemo, useState, useSyncExternalStore } from "react";
import { Button } from "./components/button";
import { Field } from "./components/field";
import { apiURL, settings } from "./settings";
import styles from "./session.module.css";

const storageKey = "perdure.token";

// The token of this tab, and whether the API has refused the credentials of this page.
const credentials = {
  token: sessionStorage.getItem(storageKey) ?? undefined,
  isMissing: settings.auth === "token" && sessionStorage.getItem(storageKey) === null,
  listeners: new Set<() => void>(),
};

function change(next: { token?: string | undefined; isMissing: boolean }): void {
  Object.assign(credentials, next);
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
  if (error instanceof ProblemError && error.status === 401) change({ token: undefined, isMissing: true });
}

const queries = new QueryClient({
  queryCache: new QueryCache({ onError: refuse }),
  mutationCache: new MutationCache({ onError: refuse }),
  // The client repeats requests itself.
  defaultOptions: { queries: { retry: false, staleTime: 5_000, refetchOnWindowFocus: true }, mutations: { retry: false } },
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
  if (isMissing) return <SignIn />;
  return (
    <QueryClientProvider client={queries}>
      <ClientContext value={client}>{children}</ClientContext>
    </QueryClientProvider>
  );
}

function SignIn() {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    queries.clear();
    if (token.trim() !== "") change({ token: token.trim(), isMissing: false });
  };
  const back = encodeURIComponent(location.pathname + location.search);
  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit}>
        <h1>Sign in to Perdure</h1>
        {settings.auth === "session" ? (
          <>
            <p className="muted">Your session has ended, or you have not signed in yet.</p>
            <a className={styles.signIn} href={`/auth/login?return=${back}`}>Sign in</a>
          </>
        ) : (
          <>
            <p className="muted">The API needs a token or an API key. This tab keeps it until you close the tab.</p>
            <Field label="Token" type="password" value={token} onChange={setToken} autoComplete="off" autoFocus />
            <Button type="submit" kind="primary">Continue</Button>
          </>
        )}
      </form>
    </main>
  );
}
