export default async function test({ page, url, say, reads }) {
  const approval = page.getByRole("form", { name: "Approval" });

  await page.goto(url);
  await say("Send 120 to Ada.");
  await approval.waitFor();
  await page.reload();
  await approval.getByRole("button", { name: "Approve", exact: true }).click();
  await reads("The bank says: Transfer 1: 120 to Ada.");

  await say("Send 75 to Grace.");
  await approval.getByLabel("Amount").fill("50");
  await approval.getByRole("button", { name: "Approve with changes" }).click();
  await reads("The bank says: Transfer 2: 50 to Grace.");

  await say("Send another 120 to Ada.");
  await approval.getByLabel("Reason for a denial").fill("That is too much.");
  await approval.getByRole("button", { name: "Deny" }).click();
  await reads("That is too much.");
  await say("Send 75 to Grace.");
  await approval.getByRole("button", { name: "Approve", exact: true }).click();
  await reads("The bank says: Transfer 3: 75 to Grace."); // the bank has not seen the denied one
}
