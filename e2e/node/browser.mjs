// Chromium, driven by playwright-core of the working directory. It executes commands, given as JSON lines, concurrently,
// and prints a line for each. It only reports; the Go tests check. Tabs of one profile share WebSockets and storage.
//
//   argument: the path of Chromium
//   in:  {id, profile, tab, most: milliseconds} and one of
//        {open: url, response?: part, clock?: true}  opens the tab, and waits for the end of a response whose URL has the
//                                      part. With clock, the tab has a clock of its own
//        {test: path of a test.mjs in examples/dojo, url}  opens the tab, and runs the test in it
//        {forward: milliseconds}  moves the clock of the tab forward
//        {reload: true}   {type: text, into: selector}   {click: selector}
//        {await: selector, has?: text, gone?: boolean}   {evaluate: expression}
//        {press: keys}  presses keys, such as "Control+Enter", where the focus is
//        {write: text}  writes a text where the focus is
//        {grant: [permissions]}  grants permissions, such as "notifications", to the origin of the page
//        {files: [paths], into: selector}  chooses files in a field
//        {emulate: {colorScheme?, forcedColors?, reducedMotion?}}   {width, height}  resizes the page
//        {axe: [tags]}  the value has the violations of the rules of axe-core with these tags
//        {aria: selector}  the value is the ARIA snapshot of an element
//        {offline: boolean}  takes the network from the tabs of the profile, or gives it back
//        {cookies: url}  the value is the cookies of the profile for the URL
//        {heap: true}  the value is the size in bytes of the JavaScript heap after a garbage collection
//        {picture: path, size: {width, height}}  writes a picture of the page
//        {close: true}  closes the tab; without tab: the profile
//   out: {id, type: "done", text?, value?}   text is the text of the page, after await
//        {id, type: "failed", error, text}
//        {type: "console", profile, tab, text}  an error or a warning of a page that is not being reloaded
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { fixtureOf } from "./dojo.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
const { chromium } = require("playwright-core");
const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
const emit = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--renderer-process-limit=4"];
const browser = await chromium.launch({ executablePath: process.argv[2], args });
const contexts = new Map(); // promises, by profile
const pages = new Map(); // by tab
const leaving = new Set(); // pages that are being reloaded and still show the old document

const contextOf = (profile) => {
  // Servers of tests have certificates of their own.
  if (!contexts.has(profile)) contexts.set(profile, browser.newContext({ ignoreHTTPSErrors: true }));
  return contexts.get(profile);
};

async function newPage({ profile, tab, clock, most }) {
  const page = await (await contextOf(profile)).newPage();
  pages.set(tab, page);
  page.setDefaultTimeout(most);
  if (clock) await page.clock.install();
  const report = (text) => void (!leaving.has(page) && emit({ type: "console", profile, tab, text }));
  page.on("console", (message) => void (["error", "warning"].includes(message.type()) && report(message.text())));
  // The console of Perdure loads nothing from elsewhere.
  page.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    const isLocal = ["127.0.0.1", "localhost"].includes(hostname) || ["data:", "blob:"].includes(protocol);
    if (!isLocal && new URL(page.url()).pathname.startsWith("/console")) report("request to another host: " + request.url());
  });
  page.on("pageerror", (error) => report("uncaught: " + error.message));
  return page;
}

async function open({ open: url, response: part, most, ...tab }) {
  const page = await newPage({ ...tab, most });
  const awaited = part && page.waitForResponse((response) => response.url().includes(part), { timeout: most });
  await Promise.all([page.goto(url), awaited?.then((response) => response.finished())]);
}

// reload does not report what the old document prints: a reload aborts its requests, such as the stream of a run.
async function reload(page, timeout) {
  leaving.add(page);
  await page.reload({ timeout, waitUntil: "commit" });
  leaving.delete(page);
  await page.waitForLoadState("load", { timeout });
}

async function test({ test: path, url, ...tab }) {
  const page = await newPage(tab);
  await (await import(pathToFileURL(path).href)).default(fixtureOf(page, url));
}

// violations runs axe-core, in a world of the driver: the policy of a page allows no foreign scripts.
async function violations(page, tags) {
  await page.evaluate(axe);
  return page.evaluate(async (values) => {
    // Colors follow emulated media with the next frame.
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    // A change of the color scheme begins transitions, in which colors have no contrast.
    const ending = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity);
    await Promise.allSettled(ending.map(({ finished }) => finished));
    const { violations } = await window.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] });
    return violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ html, failureSummary }) => html + " " + failureSummary) }));
  }, tags);
}

async function heapSize(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  await session.detach();
  return usedSize;
}

async function close({ profile, tab }) {
  if (tab === undefined) return (await contextOf(profile)).close();
  await pages.get(tab).close();
  pages.delete(tab);
}

async function execute(command) {
  if (command.open) return open(command);
  if (command.test) return test(command);
  if (command.close) return close(command);
  const page = pages.get(command.tab);
  const timeout = command.most;
  if (command.forward) await page.clock.fastForward(command.forward);
  if (command.reload) await reload(page, timeout);
  if (command.type !== undefined) await page.locator(command.into).first().fill(command.type, { timeout });
  if (command.press) await page.keyboard.press(command.press);
  if (command.write !== undefined) await page.keyboard.insertText(command.write);
  if (command.grant) await page.context().grantPermissions(command.grant, { origin: new URL(page.url()).origin });
  if (command.files) await page.locator(command.into).first().setInputFiles(command.files, { timeout });
  if (command.emulate) {
    await page.emulateMedia(command.emulate);
    // The colors of the page are complete with the second frame.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }
  if (command.offline !== undefined) await page.context().setOffline(command.offline);
  if (command.width) await page.setViewportSize({ width: command.width, height: command.height });
  if (command.axe) return { value: await violations(page, command.axe) };
  if (command.aria) return { value: await page.locator(command.aria).first().ariaSnapshot({ timeout }) };
  if (command.click) await page.locator(command.click).first().click({ timeout });
  if (command.heap) return { value: await heapSize(page) };
  if (command.picture) {
    await page.setViewportSize(command.size);
    await page.screenshot({ path: command.picture });
  }
  if (command.cookies) return { value: await page.context().cookies(command.cookies) };
  if (command.evaluate) return { value: await page.evaluate(command.evaluate) };
  if (command.await) {
    const found = page.locator(command.await, command.has === undefined ? {} : { hasText: command.has }).first();
    await found.waitFor({ state: command.gone ? "hidden" : "visible", timeout });
    return { text: await page.innerText("body") };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const { id, tab } = command;
  execute(command).then(
    (result) => emit({ id, type: "done", ...result }),
    async (error) => emit({ id, type: "failed", error: error.stack, text: (await pages.get(tab)?.innerText("body").catch((reason) => reason.message)) ?? "" }),
  );
}
await browser.close();
