// The title of the document: the number of open approvals, and the title of the screen.
const title = { screen: "", open: 0 };

function show(): void {
  document.title = `${title.open > 0 ? `(${title.open}) ` : ""}${title.screen} · Perdure`;
}

/** Shows the title of a screen as that of the document. */
export function showScreenTitle(screen: string): void {
  title.screen = screen;
  show();
}

/** Shows the number of open approvals in the title of the document, so that it can be seen from another tab. */
export function showOpenCount(open: number): void {
  title.open = open;
  show();
}
