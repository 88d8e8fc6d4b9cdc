import assert from "node:assert/strict";

export default async function test({ page, url, say, reads }) {
  const thought = page.getByText("The first idea is 10 cents.");

  await page.goto(url);
  await say("A bat and a ball cost 1.10. The bat costs 1 more than the ball. What does the ball cost?");
  await reads("Thinking …");
  await thought.waitFor();
  assert.equal(await page.getByText("The ball costs 5 cents.").count(), 0);
  await reads("The ball costs 5 cents.");
  await thought.waitFor({ state: "hidden" });
  await page.reload();
  await page.getByText("Thought", { exact: true }).click();
  await page.getByText("so x is 0.05.").waitFor();
}
