export default async function test({ page, url, reads }) {
  await page.goto(url);
  await page.getByRole("button", { name: "What is the weather in Bergen?" }).click();
  await page.getByRole("region", { name: "Weather in Bergen" }).getByText("9 °C, rainy").waitFor();
  await reads("Today Bergen is rainy.");
}
