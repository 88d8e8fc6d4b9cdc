import assert from "node:assert/strict";

export default async function test({ page, url, say, reads, watch }) {
  const haiku = page.getByRole("region", { name: "Haiku" });

  await page.goto(url);
  const seen = await watch('[aria-label="Haiku"]');
  await say("Write a haiku about the sea.");
  await reads("That was my haiku about the sea.");
  const texts = await seen();
  assert.ok(texts.some((text) => text.includes("two more") && !text.includes("page")), `the card did not grow by words: ${texts}`);
  assert.ok(texts.every((text) => "A word for the sea,two more words on the same page,then room for the wind".startsWith(text)), `${texts}`);

  await page.reload();
  await haiku.getByText("A word for the sea,").waitFor();
  await haiku.getByText("then room for the wind").waitFor();
  assert.match(await haiku.evaluate((card) => getComputedStyle(card).backgroundImage), /^linear-gradient/);
}
