import assert from "node:assert/strict";

export default async function test({ page, url, say, reads }) {
  const document = page.getByRole("region", { name: "Document" });
  const change = page.getByRole("form", { name: "Change" });
  const ending = "nobody ever learned what about.";

  await page.goto(url);
  await say("Write a story about a dragon.");
  await document.getByText("there was a dragon").waitFor();
  assert.ok(!(await document.innerText()).includes(ending), "the document grows while the model writes");
  assert.equal(await change.count(), 0);
  await change.waitFor();
  assert.ok((await document.innerText()).endsWith(ending));
  await page.reload();
  await change.getByRole("button", { name: "Confirm" }).click();
  await reads("The state was updated.");
  assert.ok((await document.innerText()).includes("a dragon"));

  await say("Write a story about a pirate.");
  await document.getByText("there was a pirate").waitFor();
  await change.getByRole("button", { name: "Reject" }).click();
  await reads("The approver rejected this call.");
  await document.getByText("there was a dragon").waitFor();

  // Stop while the model writes the document: the document before it is back.
  await say("Write a story about a robot.");
  await document.getByText("there was a robot").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await document.getByText("there was a dragon").waitFor();
  assert.equal(await change.count(), 0);
  await say("Write a story about a wizard.");
  await document.getByText("there was a wizard").waitFor();
  await change.getByRole("button", { name: "Confirm" }).click();
  await reads("My story about a wizard: The state was updated.");
}
