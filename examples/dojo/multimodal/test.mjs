import assert from "node:assert/strict";

// A PNG of 40 × 30 pixels.
const png = "iVBORw0KGgoAAAANSUhEUgAAACgAAAAeCAIAAADRv8uKAAAAKElEQVR42u3NMQ0AAAwDoEqv9MnoDhJ+knZDLBaLxWKxWCwWi8V/4wN4o7A9iZEFWAAAAABJRU5ErkJggg==";
const file = { name: "teal.png", mimeType: "image/png", buffer: Buffer.from(png, "base64") };

export default async function test({ page, url, reads }) {
  const chosen = page.locator("footer").getByRole("img");
  const sent = page.getByRole("log").getByRole("img");
  const sizes = () => sent.evaluateAll((images) => Promise.all(images.map(async (image) => (await image.decode(), [image.naturalWidth, image.naturalHeight]))));

  await page.goto(url);
  await page.getByLabel("Attach an image").setInputFiles(file);
  await chosen.waitFor();
  await page.getByRole("button", { name: "Remove" }).click();
  await chosen.waitFor({ state: "hidden" });
  await page.getByLabel("Attach an image").setInputFiles(file);
  await chosen.waitFor();
  await page.getByRole("button", { name: "What is in this image?" }).click();
  await reads("I see an image of the type image/png.");
  assert.deepEqual(await sizes(), [[40, 30]]);
  assert.equal(await chosen.count(), 0);

  await page.reload();
  await reads("I see an image of the type image/png.");
  await page.getByRole("log").getByText("What is in this image?").waitFor();
  assert.deepEqual(await sizes(), [[40, 30]]);
}
