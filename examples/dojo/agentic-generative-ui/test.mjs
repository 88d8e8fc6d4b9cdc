import assert from "node:assert/strict";

export default async function test({ page, url, say, reads }) {
  const task = page.getByRole("region", { name: "Task" });
  const step = (name) => task.getByRole("checkbox", { name });
  const isDone = (name, checked) => task.getByRole("checkbox", { name, checked }).waitFor();

  await page.goto(url);
  await say("Go to Mars.");
  await isDone("Build a rocket", true);
  assert.equal(await step("Plant a flag").isChecked(), false);
  await page.reload();
  await isDone("Plant a flag", true);
  assert.equal(await task.getByRole("checkbox", { checked: true }).count(), 4);
  await reads("All steps are done.");
  const shown = await page.getByRole("log").innerText();
  assert.ok(!shown.includes("Build a rocket") && !shown.includes("I am a script"), `the conversation shows hidden steps: ${shown}`);

  await say("Make a good day of it.");
  await isDone("Rest", false);
  await isDone("Rest", true);
}
