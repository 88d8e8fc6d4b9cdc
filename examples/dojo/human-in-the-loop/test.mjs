import assert from "node:assert/strict";

export default async function test({ page, url, say, reads }) {
  const plan = page.getByRole("form", { name: "Plan" });

  await page.goto(url);
  await say("Plan a weekend at the sea.");
  await plan.waitFor();
  await page.reload();
  await plan.getByLabel("Do step 2").uncheck();
  await plan.getByLabel("Do step 4").uncheck();
  await plan.getByRole("textbox", { name: "Step 3" }).fill("Reserve a table for Sunday");
  await plan.getByRole("button", { name: "Confirm" }).click();
  await reads("Confirmed: Book a room with a view; Reserve a table for Sunday. (I am a script: I do nothing.)");
  assert.equal(await plan.count(), 0);

  await say("Plan it again.");
  await plan.getByRole("button", { name: "Reject" }).click();
  await reads("Rejected: do none of the steps. (I am a script: I do nothing.)");

  // Stop while the model writes the plan: the call is closed, and the thread continues.
  await say("Describe a journey around the world.");
  await reads("Planning …");
  await page.getByRole("button", { name: "Stop" }).click();
  await reads("The call was cancelled.");
  assert.equal(await plan.count(), 0);
  await say("Plan a weekend at the sea.");
  await plan.getByRole("button", { name: "Confirm" }).click();
  await reads("Confirmed: Book a room with a view; Rent two bicycles; Reserve a table for Saturday; Buy sunscreen.");
}
