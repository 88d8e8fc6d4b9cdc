import { type CSSProperties, type ReactNode, StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./style.css";

/** Renders a page into the document. */
export function show(page: ReactNode) {
  createRoot(document.getElementById("root")!).render(<StrictMode>{page}</StrictMode>);
}

/** Returns the description in the head of a document. */
export function descriptionOf(page: Document) {
  return page.querySelector<HTMLMetaElement>("meta[name=description]")?.content;
}

/** The frame of a feature's page: its title, its description, and a button for another thread. */
export function Page({ children, style }: { children: ReactNode; style?: CSSProperties }) {
  return (
    <div className="page" style={style}>
      <main>
        <header>
          <a href="../">Dojo</a>
          <h1>{document.title}</h1>
          <button type="button" onClick={() => (location.hash = crypto.randomUUID())}>New thread</button>
        </header>
        <p>{descriptionOf(document)}</p>
        {children}
      </main>
    </div>
  );
}
