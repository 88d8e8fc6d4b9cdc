// A tab of Chromium, driven by playwright-core of the working directory. It reads commands as JSON lines, and
// prints a line for each. It only reports; the Go tests check.
//
//   argument: the path of Chromium
//   in:  {open: url}   {reload: true}   {type: text, into: selector}   {click: selector}
//        {await: selector, has?: text, gone?: boolean, most?: milliseconds}
//   out: {type: "done", text}     the command is done; text is the text of the page
//        {type: "failed", error, text}
//        {type: "console", text}  an error or a warning of the page
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { chromium } = createRequire(join(process.cwd(), "package.json"))("playwright-core");
const emit = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
const page = await browser.newPage();
page.on("console", (message) => void (["error", "warning"].includes(message.type()) && emit({ type: "console", text: message.text() })));
page.on("pageerror", (error) => emit({ type: "console", text: "uncaught: " + error.message }));

async function execute(command) {
  if (command.open) await page.goto(command.open);
  if (command.reload) await page.reload();
  if (command.type !== undefined) await page.locator(command.into).first().fill(command.type);
  if (command.click) await page.locator(command.click).first().click();
  if (command.await) {
    const found = page.locator(command.await, command.has === undefined ? {} : { hasText: command.has }).first();
    await found.waitFor({ state: command.gone ? "hidden" : "visible", timeout: command.most });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const result = await execute(JSON.parse(line)).then(() => ({ type: "done" }), (error) => ({ type: "failed", error: error.message }));
  emit({ ...result, text: await page.innerText("body").catch((error) => error.message) });
}
await browser.close();
