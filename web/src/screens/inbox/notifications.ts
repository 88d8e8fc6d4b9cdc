import { useSyncExternalStore } from "react";

/** Whether the browser notifies of new approvals. `blocked`: its settings forbid that. `missing`: it cannot. */
export type NotificationState = "on" | "off" | "blocked" | "missing";

const storageKey = "perdure.notifications";
const listeners = new Set<() => void>();

/** Returns whether this browser notifies of new approvals. */
export function notificationState(): NotificationState {
  if (!("Notification" in window) || !window.isSecureContext) return "missing";
  if (Notification.permission === "denied") return "blocked";
  return Notification.permission === "granted" && localStorage.getItem(storageKey) === "on" ? "on" : "off";
}

/** Turns notifications on, for which the browser may ask its user, or off. Returns the new state. */
export async function toggleNotifications(): Promise<NotificationState> {
  const isOn = notificationState() === "on";
  localStorage.setItem(storageKey, isOn ? "off" : "on");
  if (!isOn && "Notification" in window) await Notification.requestPermission();
  for (const listener of listeners) listener();
  return notificationState();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Follows whether this browser notifies of new approvals. */
export const useNotificationState = (): NotificationState => useSyncExternalStore(subscribe, notificationState);
