import assert from "node:assert/strict";

export default async function test({ page, url }) {
  await page.goto(url);
  const features = page.getByRole("list", { name: "Features" });
  await features.getByRole("link", { name: "Agentic chat" }).click();
  await page.getByRole("heading", { name: "Agentic chat" }).waitFor();
  await page.getByRole("link", { name: "Dojo" }).click();
  await features.waitFor();
  for (const feature of await features.getByRole("listitem").all()) {
    const [title, description] = (await feature.innerText()).split("\n").filter(Boolean);
    assert.ok(title && description, `the feature ${title} needs a title and a description in its index.html`);
  }
}
