import { descriptionOf, show } from "./chat/Page";

const pages = import.meta.glob<string>(["./*/index.html", "!./dist/**"], { query: "?raw", import: "default", eager: true });

const features = Object.entries(pages).map(([file, html]) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  return { url: file.replace("index.html", ""), title: page.title, description: descriptionOf(page) };
});

show(
  <main>
    <h1>{document.title}</h1>
    <p>{descriptionOf(document)}</p>
    <ul className="features" aria-label="Features">
      {features.map(({ url, title, description }) => (
        <li key={url}>
          <a href={url}>{title}</a>
          <p>{description}</p>
        </li>
      ))}
    </ul>
  </main>,
);
