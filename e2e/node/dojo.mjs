// Runs the browser tests of examples/dojo in one Chromium, with playwright-core of the working directory. It reads
// commands as JSON lines, and prints a line for each.
//
//   arguments: the path of Chromium, and the milliseconds after which an action of a page fails
//   in:  {test: path of a test.mjs, url: the page of the feature}
//   out: {error: text of the failure, or none; shown: text of the page; problems: [errors and warnings of the page]}
//
// A test.mjs exports a function that receives:
//   page        the page, which has not opened the URL
//   url         the URL of the feature's page, with a thread of its own
//   say(text)   sends a message
//   reads(text, options) waits until the conversation has the text. The options are those of Playwright's waitFor
//   watch(selector) records each text of the first element that the selector finds, until the page reloads. It returns
//               a function that returns the texts
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(join(process.cwd(), "package.json"))("playwright-core");
const [executablePath, timeout] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });

async function run({ test, url }) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(Number(timeout));
  const problems = [];
  page.on("console", (line) => void (["error", "warning"].includes(line.type()) && problems.push(line.text())));
  page.on("pageerror", (error) => problems.push("uncaught: " + error.message));
  const say = async (text) => {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const reads = (text, options) => page.getByRole("log").getByText(text).last().waitFor(options);
  const watch = async (selector) => {
    const texts = await page.evaluateHandle((selector) => {
      const texts = [];
      const record = () => {
        const text = document.querySelector(selector)?.textContent;
        if (text !== undefined && text !== texts.at(-1)) texts.push(text);
      };
      new MutationObserver(record).observe(document, { subtree: true, childList: true, characterData: true });
      return texts;
    }, selector);
    return () => texts.jsonValue();
  };
  let error;
  try {
    await (await import(pathToFileURL(test).href)).default({ page, url, say, reads, watch });
  } catch (reason) {
    error = String(reason.stack ?? reason);
  }
  const shown = await page.innerText("body").catch(String);
  await context.close();
  return { error, shown, problems };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await run(JSON.parse(line))) + "\n");
}
await browser.close();
