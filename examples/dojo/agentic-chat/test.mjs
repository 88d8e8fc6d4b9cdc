import assert from "node:assert/strict";

export default async function test({ page, url, say, reads }) {
  await page.goto(url);
  await say("What can you do?");
  await reads("I am a script.");
  await say("Make the background teal.");
  await reads("The background has changed. Do you like teal?");
  const background = () => page.locator(".page").evaluate((element) => getComputedStyle(element).backgroundColor);
  assert.equal(await background(), "rgb(0, 128, 128)");
  await page.reload();
  await reads("Do you like teal?");
  assert.equal(await background(), "rgb(0, 128, 128)");

  await page.getByRole("button", { name: "New thread" }).click();
  await page.getByText("Do you like teal?").waitFor({ state: "hidden" });
  await say("What can you do?");
  await reads("I am a script.");
  assert.equal(await background(), "rgba(0, 0, 0, 0)");
}
