import { useEffect, useSyncExternalStore } from "react";

function subscribe(listener: () => void): () => void {
  window.addEventListener("online", listener);
  window.addEventListener("offline", listener);
  return () => {
    window.removeEventListener("online", listener);
    window.removeEventListener("offline", listener);
  };
}

/** Whether the browser has a network. */
export const useOnline = (): boolean => useSyncExternalStore(subscribe, () => navigator.onLine);

const retryPause = 5_000;

/** After a connection was given up, tries again while the page is visible and the browser has a network. */
export function useRetry(isLost: boolean, retry: () => void): void {
  useEffect(() => {
    if (!isLost) return;
    const again = () => {
      if (navigator.onLine && document.visibilityState === "visible") retry();
    };
    const timer = window.setInterval(again, retryPause);
    window.addEventListener("online", again);
    return () => {
      window.clearInterval(timer);
      window.removeEventListener("online", again);
    };
  }, [isLost, retry]);
}
