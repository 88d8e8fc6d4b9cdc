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

  // Stop while the model writes the arguments of the call: the call is closed, and the thread continues.
  await say("Paint a sunset.");
  await reads("Calling change_background …");
  await page.getByRole("button", { name: "Stop" }).click();
  await reads("The call was cancelled.", { state: "attached" });
  assert.equal(await page.getByText("Calling change_background …").count(), 0);
  await say("Make the background navy.");
  await reads("The background has changed. Do you like navy?");
  assert.equal(await background(), "rgb(0, 0, 128)");

  await page.getByRole("button", { name: "New thread" }).click();
  await page.getByText("Do you like navy?").waitFor({ state: "hidden" });
  await say("What can you do?");
  await reads("I am a script.");
  assert.equal(await background(), "rgba(0, 0, 0, 0)");
}
