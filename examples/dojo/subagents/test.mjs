import assert from "node:assert/strict";

export default async function test({ page, url, say, reads, watch }) {
  const subagent = (name) => page.getByRole("region", { name });

  await page.goto(url);
  const seen = await watch('[aria-label="historian"][aria-busy="true"]');
  await say("Write about tea.");
  await reads("The article: Long ago somebody found tea in the mountains. A cup of tea is 97 percent water. The rest is taste.");
  const texts = await seen();
  assert.ok(texts.some((text) => /Long ago/.test(text) && !/mountains/.test(text)), `the page did not show the historian at work: ${texts}`);

  const check = async () => {
    await subagent("historian").getByText("Long ago somebody found tea in the mountains.").waitFor();
    await subagent("chemist").getByText("Called calculate").waitFor();
    await subagent("writer").getByText("The rest is taste.").last().waitFor();
    for (const name of ["historian", "chemist", "writer"]) await subagent(name).getByText(`${name}: finished`).waitFor();
    // The supervisor's own messages are not in the cards, and theirs are not in the supervisor's list.
    assert.equal(await page.getByRole("log").locator("> ol > .assistant").count(), 2);
    assert.equal(await page.getByRole("alert").count(), 0);
  };
  await check();
  await page.reload();
  await check();
}
