/** The color scheme of the page; `system` follows the settings of the system. */
export type Theme = "system" | "light" | "dark";

const storageKey = "perdure.theme";
const order: Theme[] = ["system", "light", "dark"];

/** Returns the chosen theme. */
export function currentTheme(): Theme {
  const stored = localStorage.getItem(storageKey) as Theme | null;
  return stored !== null && order.includes(stored) ? stored : "system";
}

/** Shows the page in the chosen theme. */
export function applyTheme(theme: Theme = currentTheme()): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Chooses the next theme, and returns it. */
export function nextTheme(): Theme {
  const theme = order[(order.indexOf(currentTheme()) + 1) % order.length]!;
  localStorage.setItem(storageKey, theme);
  applyTheme(theme);
  return theme;
}
