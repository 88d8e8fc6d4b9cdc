import { PerdureClient, ProblemError } from "@perdure/client";
import { type FormEvent, useRef, useState } from "react";
import { announce, Announcer } from "./components/announcer";
import { Button } from "./components/button";
import { Field } from "./components/field";
import { describe } from "./components/problem";
import { apiURL, settings } from "./settings";
import styles from "./session.module.css";

/** Properties of a SignIn. */
export interface SignInProps {
  /** Whether the API has accepted the credentials before, and refuses them now. */
  hasEnded: boolean;
  /** Called with a token that the API accepts. */
  onToken: (token: string) => void;
}

/** Asks for credentials: a token, or a sign-in at the OpenID provider. */
export function SignIn({ hasEnded, onToken }: SignInProps) {
  return (
    <main className={styles.page}>
      <Announcer />
      {settings.auth === "session" ? <SessionCard hasEnded={hasEnded} /> : <TokenForm hasEnded={hasEnded} onToken={onToken} />}
    </main>
  );
}

function SessionCard({ hasEnded }: { hasEnded: boolean }) {
  const back = encodeURIComponent(location.pathname + location.search);
  return (
    <div className={styles.card}>
      <h1>Sign in to Perdure</h1>
      {hasEnded ? <p role="alert" className={styles.ended}>Your session has ended. Sign in again to continue on this page.</p> : <p className="muted">You are not signed in.</p>}
      <a className={styles.signIn} href={`/auth/login?return=${back}`}>Sign in</a>
    </div>
  );
}

function TokenForm({ hasEnded, onToken }: SignInProps) {
  const [token, setToken] = useState("");
  const [refusal, setRefusal] = useState<string>();
  const [isChecking, setChecking] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const refuse = (text: string) => {
    setRefusal(text);
    announce(text);
    form.current?.querySelector("input")?.focus();
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const entered = token.trim();
    if (isChecking) return;
    if (entered === "") return refuse("Enter a token or an API key.");
    setChecking(true);
    const reason = await refusalOf(entered);
    setChecking(false);
    if (reason === undefined) onToken(entered);
    else refuse(reason);
  };
  const change = (text: string) => {
    setToken(text);
    setRefusal(undefined);
  };
  return (
    <form ref={form} className={styles.card} onSubmit={(event) => void submit(event)}>
      <h1>Sign in to Perdure</h1>
      {hasEnded && <p role="alert" className={styles.ended}>The API no longer accepts your token: it has expired, or it was revoked. Enter a new one to continue on this page.</p>}
      <p className="muted">The API needs a token or an API key. This tab keeps it until you close the tab.</p>
      <Field label="Token" type="password" value={token} onChange={change} error={refusal} autoComplete="off" autoFocus />
      <Button type="submit" kind="primary" isDisabled={isChecking}>{isChecking ? "Checking …" : "Continue"}</Button>
    </form>
  );
}

// A token is checked before the page uses it, so that its user can correct it. Returns undefined if the API accepts it.
async function refusalOf(token: string): Promise<string | undefined> {
  try {
    await new PerdureClient({ baseUrl: apiURL, token, retry: { attempts: 1 } }).agents();
    return undefined;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 401) return "The API refused this token. Check that you have copied all of it, and that it has not expired.";
    if (error instanceof ProblemError && error.status < 500) return undefined; // it knows the caller, who may not list agents
    const { title, advice } = describe(error);
    return advice === undefined ? title : `${title} ${advice}`;
  }
}
